"""IBM Model 1 against NLTK and aligners in C and C++, and its alignments against gold ones.

Needs Multi30k (``attnscope data get multi30k``, or ATTNSCOPE_DATA), and the packages that are
compared with: ``pip install nltk sil-thot eflomal``. Run by itself it prints alignment error rates.
"""

from __future__ import annotations

import html
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from attnscope.datasets import data_dir, parallel
from attnscope.datasets.kinds import Alignments
from attnscope.datasets.readers.alignments import read_alignments
from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.alignment import (
    Link,
    alignment_error_rate,
    best_links,
    diagonal_links,
    flipped,
)
from attnscope.probes.lexicon.counts import number_words
from attnscope.probes.lexicon.ibm1 import Model1, fit
from harness import Measured, Row, spread

ITERATIONS, REPEATS, SUBSET = 5, 3, 2000
Texts = list[list[str]]
_WORD = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Lower-case a text and split it into words and punctuation marks."""
    return _WORD.findall(html.unescape(text).lower())


@cache
def multi30k() -> tuple[Texts, Texts]:
    """Return the training pairs, English as the source."""
    german, english = parallel("multi30k").splits["train"]
    return [words(text) for text in english], [words(text) for text in german]


def ours(source: Texts, target: Texts) -> tuple[Model1, tuple[str | None, ...], tuple[str, ...]]:
    """Number the words and fit, with a null word, called ``None``, as the others have one."""
    x, left = number_words(source)
    y, right = number_words(target)
    return fit(x, y, ITERATIONS, null=True), (*left, None), right


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a piece of work, programs it starts included, and its result."""
    start = sum(os.times()[:4])
    result = work()
    return sum(os.times()[:4]) - start, result


def compare(
    source: Texts, target: Texts, prepare: Callable[[], Callable[[], Any]]
) -> tuple[Measured, Any]:
    """Take turns; return the times and their last result.

    What ``prepare`` does is on nobody's bill; what it returns is timed.
    """
    fast, slow = [], []
    for _ in range(REPEATS):
        theirs = prepare()
        fast.append(spent(lambda: ours(source, target))[0])
        taken, result = spent(theirs)
        slow.append(taken)
    ratios = tuple(a / b for a, b in zip(slow, fast, strict=True))
    how = f"{len(source):,} pairs; {spread(ratios)}"
    return Measured(median(slow), median(fast), how, ratios), result


def nltk() -> Measured:
    """Compare with NLTK, which gets every target word once: it counts equal ones as one."""
    from nltk.translate import AlignedSent, IBMModel1

    source, target = (side[:SUBSET] for side in multi30k())
    once = [list(dict.fromkeys(sentence)) for sentence in target]
    corpus = [AlignedSent(y, x) for x, y in zip(source, once, strict=True)]

    def prepare() -> Callable[[], IBMModel1]:
        model = IBMModel1(corpus, 0)

        def train() -> IBMModel1:
            for _ in range(ITERATIONS):
                model.train(corpus)
            return model

        return train

    found, theirs = compare(source, once, prepare)
    far = gap(source, once, lambda i, o: theirs.translation_table[o][i])
    return replace(found, how=f"{found.how}; {far}")


def thot(name: str) -> Measured:
    """Compare with a model of Thot (C++): IBM Model 1 by EM, or its form of fast_align."""
    from thot import alignment

    source, target = multi30k()

    def train() -> Any:
        model = getattr(alignment, name)()
        for x, y in zip(source, target, strict=True):
            model.add_sentence_pair(x, y)
        model.start_training()
        for _ in range(ITERATIONS):
            model.train()
        model.end_training()
        return model

    found, theirs = compare(source, target, lambda: train)
    if name != "Ibm1AlignmentModel":
        return replace(found, how=f"{found.how}; with a null word and a diagonal prior")

    def probability(i: str | None, o: str) -> float:
        # Thot's null word has the number 0.
        row = 0 if i is None else theirs.get_src_word_index(i)
        return float(theirs.translation_prob(row, theirs.get_trg_word_index(o)))

    return replace(found, how=f"{found.how}; {gap(source, target, probability)}")


def eflomal() -> Measured:
    """Compare with eflomal (C): it samples alignments of Model 1, a sweep for an iteration."""
    from eflomal import Aligner

    source, target = multi30k()
    sides = [[" ".join(sentence) for sentence in side] for side in (source, target)]

    def align() -> None:
        aligner = Aligner(model=1, n_iterations=(ITERATIONS, 0, 0), n_samplers=1)
        with tempfile.TemporaryDirectory() as folder:
            aligner.align(*sides, links_filename_fwd=str(Path(folder) / "links"))

    found, _ = compare(source, target, lambda: align)
    return replace(found, how=f"{found.how}; sweeps of Gibbs sampling, one sampler, links written")


def gap(source: Texts, target: Texts, theirs: Callable[[str | None, str], float]) -> str:
    """Say how far their table is from ours at most."""
    model, left, right = ours(source, target)
    table = model.translation.tocoo()
    cells = zip(table.row.tolist(), table.col.tolist(), table.data.tolist(), strict=True)
    largest = max(abs(theirs(left[i], right[o]) - value) for i, o, value in cells)
    return f"largest difference of a probability {largest:.0e}"


def gold_alignments() -> Alignments:
    """Return the gold alignments, German as the source.

    Raises:
        AttnscopeError: they are not in the data folder.
    """
    folder = data_dir() / "word_alignment" / "crossalign"
    if not folder.is_dir():
        raise AttnscopeError(f"'{folder}' is not there: expected test.de-en and deen.talp in it.")
    return read_alignments(folder / "test.de-en", folder / "deen.talp")


def corpora(gold: Alignments) -> list[tuple[str, Texts, Texts]]:
    """Return what there is to train on: the gold sentences alone, then more with them."""
    source, target = (
        [[word.lower() for word in sentence] for sentence in side]
        for side in (gold.source, gold.target)
    )
    found = [("gold sentences", source, target)]
    for key in ("multi30k", "iwslt14"):
        try:
            text = parallel(key)
        except AttnscopeError as error:
            print(f"without {key}: {error}", file=sys.stderr)
            continue
        name, source, target = found[-1]
        german, english = ([words(t) for s in text.splits.values() for t in s[i]] for i in (0, 1))
        found.append((f"{name} + {key}", source + german, target + english))
    return found


def error_rates(
    gold: Alignments, source: Texts, target: Texts, iterations: int, null: bool
) -> dict[str, float]:
    """Train both directions on pairs that begin with the gold ones, and score the gold ones."""
    (x, _), (y, _) = number_words(source), number_words(target)
    count = len(gold.source)
    german, english = (np.split(side.ids, side.starts[1:-1])[:count] for side in (x, y))
    forward, backward = fit(x, y, iterations, null), fit(y, x, iterations, null)
    pairs = list(zip(german, english, strict=True))
    there = [best_links(forward.alpha(a, b), null) for a, b in pairs]
    back = [flipped(best_links(backward.alpha(b, a), null)) for a, b in pairs]
    links: dict[str, list[frozenset[Link]]] = {
        "de to en": there,
        "en to de": back,
        "both": [a & b for a, b in zip(there, back, strict=True)],
        "either": [a | b for a, b in zip(there, back, strict=True)],
    }
    return {
        name: alignment_error_rate(found, gold.sure, gold.possible) for name, found in links.items()
    }


def alignments(console: Console) -> None:
    """Print alignment error rates on the gold sentences."""
    gold = gold_alignments()
    title = f"Alignment error rate on {len(gold.source)} German-English sentences"
    table = Table("Trained on", "Pairs", "Null", "Iterations", title=title)
    for name in ("de to en", "en to de", "both", "either"):
        table.add_column(name, justify="right")
    lengths = [(len(a), len(b)) for a, b in zip(gold.source, gold.target, strict=True)]
    there = [diagonal_links(a, b) for a, b in lengths]
    back = [flipped(diagonal_links(b, a)) for a, b in lengths]
    straight = [
        alignment_error_rate(links, gold.sure, gold.possible)
        for links in (
            there,
            back,
            [a & b for a, b in zip(there, back, strict=True)],
            [a | b for a, b in zip(there, back, strict=True)],
        )
    ]
    table.add_row("nothing: the diagonal", "0", "-", "-", *(f"{rate:.3f}" for rate in straight))
    for name, source, target in corpora(gold):
        for null in (False, True):
            for iterations in (1, 5, 10):
                with console.status(f"{name}, {iterations} iterations"):
                    rates = error_rates(gold, source, target, iterations, null)
                shown = (f"{rate:.3f}" for rate in rates.values())
                said = "yes" if null else "no"
                table.add_row(name, f"{len(source):,}", said, str(iterations), *shown)
    console.print(table)


WHAT, LIMIT = f"IBM Model 1, {ITERATIONS} iterations on Multi30k", "memory bandwidth"
ROWS = (
    Row("ibm1.nltk", f"{WHAT}, {SUBSET:,} pairs", "NLTK", LIMIT, nltk),
    Row("ibm1.thot", WHAT, "Thot, C++", LIMIT, partial(thot, "Ibm1AlignmentModel")),
    Row("ibm1.fast_align", WHAT, "Thot fast_align, C++", LIMIT, partial(thot, "FastAlignModel")),
    Row("ibm1.eflomal", WHAT, "eflomal, C, sweeps", LIMIT, eflomal),
)


if __name__ == "__main__":
    try:
        alignments(Console(width=None if sys.stdout.isatty() else 150))
    except AttnscopeError as error:
        sys.exit(f"ibm1.py: {error}")
