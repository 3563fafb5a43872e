"""What attention will look at in parallel text: alignments from the pairs alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.probes.lexicon.aligners import CHOSEN, ITERATIONS, attention
from attnscope.report import Dots, Figure, Heat, Panel, Section
from attnscope.report.section import ShadedText

LOOKED = 500
"""Pairs whose alignments are counted."""
SHADED, DRAWN = 2, 4
"""Pairs that are shaded word by word, and drawn as grids."""
SHORT = (4, 11)
"""Words of a pair that is shown, at least and at most where there are such pairs."""


def alignment_section(asked: AskedParallel) -> Section:
    """Predict alignments, and say how much of them the diagonal knows."""
    if not asked.told:
        return Section("alignment", "Where attention will look", (_cannot_tell(asked), _how(asked)))
    some = np.random.default_rng(asked.seed).permutation(len(asked.rows))[:LOOKED]
    agreed = same = by_chance = attended = sources = targets = nothing = 0.0
    for m in some:
        x, y = asked.ids(m)
        best = _best(attention(asked.model, x, y))
        plain = _best(attention(asked.ibm1, x, y))
        diagonal = (2 * np.arange(len(y)) + 1) * len(x) // (2 * len(y))
        agreed += float((plain == diagonal).sum())
        same += float((plain == best).sum())
        attended += len(np.unique(best[best >= 0]))
        nothing += float((best < 0).sum())
        by_chance += len(y) / len(x)
        sources, targets = sources + len(x), targets + len(y)
    tension = getattr(asked.model, "tension", 0.0)
    sentences = (
        f"Attention will look at {attended / sources:.0%} of the source words: the others are no "
        f"target word's best source. {nothing / targets:.0%} of the target words have none.",
        f"By the words alone (IBM Model 1) {agreed / targets:.0%} of the target words look along "
        "the diagonal, at the source word at the same share of the sentence; "
        f"{by_chance / targets:.0%} would by chance: "
        + (
            "order alone would find most of the alignment."
            if agreed > 0.5 * targets
            else "where attention looks is in the words, not in the order alone."
        )
        + f" With the order known as well, {same / targets:.0%} look where the words alone said; "
        f"the diagonal pulls with λ = {tension:.1f} (0 not at all, 14 fully).",
        _how(asked),
    )
    shown, by_people = _short(asked, some)
    return Section(
        "alignment",
        "Where attention will look",
        sentences,
        shaded=tuple(text for m in shown[:SHADED] for text in _shaded(asked, m)),
        shaded_title="Source words by the attention that the target word in front is predicted to "
        "pay them",
        figures=(grids(asked, [*by_people[: DRAWN // 2], *shown][:DRAWN]),),
    )


def _cannot_tell(asked: AskedParallel) -> str:
    found = asked.association
    words = f"{found.evidence.shape[0]:,} and {found.evidence.shape[1]:,} words"
    best = found.evidence.data
    if not len(best) or best.max() <= 0:
        return (
            f"Cannot tell: in {found.pairs:,} pairs of {words} no two words stand together more "
            "often than by chance. Some thousand pairs would be needed, if they are translations."
        )
    at = int(best.argmax())
    row = int(np.searchsorted(found.evidence.indptr, at, "right")) - 1
    column = int(found.evidence.indices[at])
    return (
        f"Cannot tell: in {found.pairs:,} pairs of {words} no two words go together beyond "
        f"chance. The nearest, '{asked.source_words[row]}' and '{asked.target_words[column]}', "
        f"has {best.max():.1f} nats of evidence, and {found.bound:.1f} are needed with so many "
        f"words: about {found.pairs_needed():,} pairs of this kind would be."
    )


def _how(asked: AskedParallel) -> str:
    source, _ = asked.data.splits["train"]
    left = len(source) - len(asked.rows) - asked.empty
    said = f"{CHOSEN.name.capitalize()}, {ITERATIONS} iterations over {len(asked.rows):,} pairs."
    if left:
        said += f" {left:,} more pairs were not counted: not among those drawn at random."
    if asked.empty:
        said += f" {asked.empty:,} pairs with a side without words were left out."
    for reason, count in asked.data.skipped.items():
        said += f" {count:,} pairs were left out: {reason}."
    return said


def _best(alpha: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the source word that each target word looks at; -1 where the null word has more."""
    null = 1 - alpha.sum(axis=1)
    top = alpha.max(axis=1)
    return np.where((top > 0) & (top >= null), alpha.argmax(axis=1), -1)


def _short(asked: AskedParallel, some: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Return pairs to be shown, short ones where there are some, and gold ones apart."""
    low, high = SHORT

    def fits(m: int) -> bool:
        return all(low <= len(side) <= high for side in asked.ids(m))

    first = len(asked.rows)
    gold = [m for m in range(first, first + len(asked.gold_pieces[0])) if fits(m)]
    found = [int(m) for m in some if fits(int(m))]
    by_length = sorted(map(int, some), key=lambda m: sum(map(len, asked.ids(m))))
    return found or by_length[:DRAWN], gold


def _shaded(asked: AskedParallel, number: int) -> list[ShadedText]:
    x, y = asked.ids(number)
    alpha = attention(asked.model, x, y)
    words = tuple(asked.source_words[i] for i in x)
    return [
        ShadedText(words, row, f"{asked.target_words[o]} ←")
        for o, row in zip(y, alpha, strict=True)
    ]


def grids(asked: AskedParallel, chosen: list[int]) -> Figure:
    """Draw pairs as grids: a row for each target word, a column for each source word."""
    panels = []
    for m in chosen:
        x, y = asked.ids(m)
        alpha = attention(asked.model, x, y)
        marks: list[Heat | Dots] = [
            Heat(
                np.arange(len(x) + 1) - 0.5,
                np.arange(len(y) + 1) - 0.5,
                alpha[::-1],
                "predicted attention",
            )
        ]
        links = sorted(_gold_links(asked, m))
        if links:
            at = np.array(links, dtype=float)
            marks.append(Dots(at[:, 0], len(y) - 1 - at[:, 1], label="sure links by people"))
        columns = enumerate(asked.source_words[i] for i in x)
        rows = enumerate(asked.target_words[o] for o in y[::-1])
        panels.append(
            Panel(
                "",
                asked.data.languages[0],
                asked.data.languages[1],
                tuple(marks),
                xticks=tuple((float(at), word) for at, word in columns),
                yticks=tuple((float(at), word) for at, word in rows),
            )
        )
    dots = " Dots are the sure links of the gold alignment." if asked.gold else ""
    return Figure(
        "alignments",
        "Pairs, and where each target word will look",
        "A row is a target word, read from top to bottom; its weights over the source words sum to "
        f"1 less what belongs to no source word.{dots}",
        tuple(panels),
        columns=2,
    )


def _gold_links(asked: AskedParallel, number: int) -> set[tuple[int, int]]:
    """Return the sure links of a gold pair, piece by piece; none for other pairs."""
    at = number - len(asked.rows)
    if asked.gold is None or at < 0:
        return set()
    one, other = (side[at].of for side in asked.gold_pieces)
    sure = asked.gold.alignments.sure[at]
    return {(i, j) for i, a in enumerate(one) for j, b in enumerate(other) if (a, b) in sure}
