"""Aligners on gold alignments: the table of docs/predict.md. Needs the data folder.

    python benchmarks/alignments.py

German and English, both ways. Pairs are those of IWSLT'14 and Multi30k with the 508 pairs of the
gold set, whose links are not used. The aligner is chosen by the mean error rate of both ways on the
gold pairs of odd lines, and judged on those of even lines.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from attnscope.datasets import data_dir, parallel
from attnscope.datasets.kinds import Alignments, ParallelText
from attnscope.datasets.readers.gold_links import Gold, read_gold
from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.prediction.gold import predicted_links
from attnscope.probes.lexicon.aligners import FAMILY
from attnscope.probes.lexicon.alignment import (
    chance_error_rate,
    diagonal_links,
    flipped,
    score_links,
)

SIZES = (2_000, 8_000, 25_000, 0)


def turned(gold: Gold) -> Gold:
    """Return gold links of the other direction."""
    made = gold.alignments
    links = ([flipped(one) for one in side] for side in (made.sure, made.possible))
    return Gold(Alignments(made.target, made.source, *links), gold.form, gold.base, True)


def corpus(size: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Return so many German and English sentences of both corpora, all of them for 0."""
    one, other = [], []
    for name in ("iwslt14", "multi30k"):
        for source, target in parallel(name).splits.values():
            one += source
            other += target
    order = np.random.default_rng(seed).permutation(len(one))[: size or len(one)]
    return [one[i] for i in order], [other[i] for i in order]


def main() -> None:
    """Print a table for each size and direction."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    asked_for = arguments.parse_args()
    folder = data_dir() / "word_alignment" / "crossalign"
    gold = read_gold(f"{folder}/test.de-en:{folder}/deen.talp")
    halves = {"odd": slice(0, None, 2), "even": slice(1, None, 2)}
    print("| pairs | way | links by | AER, odd lines | AER, even lines | interval | processor |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for size in asked_for.sizes:
        german, english = corpus(size)
        for way in ("de-en", "en-de"):
            straight = way == "de-en"
            sides = (german, english) if straight else (english, german)
            text = ParallelText(way, tuple(way.split("-")), {"train": sides})
            asked = AskedParallel(text, gold=gold if straight else turned(gold))
            made = asked.gold.alignments
            lengths = [(len(x), len(y)) for x, y in zip(made.source, made.target, strict=True)]
            rows = {"diagonal alone": ([diagonal_links(*both) for both in lengths], 0.0)}
            for aligner in FAMILY:
                start = time.process_time()
                model = aligner.fit(*asked.counted)
                rows[aligner.name] = (predicted_links(asked, model), time.process_time() - start)
            chance = [
                100 * chance_error_rate(lengths[h], made.sure[h], made.possible[h])
                for h in halves.values()
            ]
            head = f"| {len(asked.rows):,} | {way} |"
            print(f"{head} chance | {chance[0]:.1f} | {chance[1]:.1f} | | |")
            for name, (links, spent) in rows.items():
                odd, even = (
                    score_links(links[h], made.sure[h], made.possible[h]) for h in halves.values()
                )
                print(
                    f"{head} {name} | {100 * odd.error:.1f} | "
                    f"{100 * even.error:.1f} | {100 * even.low:.1f} to {100 * even.high:.1f} | "
                    f"{spent:.1f} s |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
