"""What attention will look at in parallel text: alignments from the pairs alone."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from attnscope.datasets.kinds import ParallelText
from attnscope.prediction.asked import Asked
from attnscope.probes.lexicon import ibm1
from attnscope.probes.lexicon.counts import number_words
from attnscope.report import Section, Table
from attnscope.report.section import ShadedText

MOST = 30_000
"""Pairs that are counted; more are sampled."""
_WORDS = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
ITERATIONS = 5
SHADED = 3
FIRST = 12
SEEN = 10
"""Times that two words must stand in a pair to be named."""


def alignment_section(asked: Asked[ParallelText]) -> Section:
    """Predict alignments by IBM Model 1, and say how much of them the diagonal knows."""
    source, target = asked.data.splits["train"]
    order = np.arange(len(source))
    if len(order) > MOST:
        order = np.sort(np.random.default_rng(asked.seed).permutation(len(order))[:MOST])
    rows = [(_words(source[i]), _words(target[i])) for i in order]
    empty = sum(not (x and y) for x, y in rows)
    rows = [(x, y) for x, y in rows if x and y]
    asked.tell("aligning words", 0, len(rows))
    one, source_words = number_words([x for x, _ in rows])
    other, target_words = number_words([y for _, y in rows])
    model = ibm1.fit(one, other, ITERATIONS)
    some = np.random.default_rng(asked.seed).permutation(len(rows))[:500]
    agreed, attended, sources, targets, surest = 0, 0, 0, 0, []
    for m in some:
        x = one.ids[one.starts[m] : one.starts[m + 1]]
        y = other.ids[other.starts[m] : other.starts[m + 1]]
        alpha = model.alpha(x.tolist(), y.tolist())
        best = alpha.argmax(axis=1)
        diagonal = (2 * np.arange(len(y)) + 1) * len(x) // (2 * len(y))
        agreed += int((best == diagonal).sum())
        attended += len(np.unique(best))
        sources, targets = sources + len(x), targets + len(y)
        surest.append(float(alpha.max(axis=1).mean()))
    first = _first_pairs(asked, rows, model, source_words, target_words)
    chance = float(np.mean([1 / len(x) for x, _ in rows]))
    sentences = (
        f"Attention will look at {attended / sources:.0%} of the source words: the others are no "
        "target word's best source.",
        f"{agreed / targets:.0%} of the target words are predicted to look along the diagonal, the "
        f"source word at the same share of the sentence ({chance:.0%} would by chance): "
        + (
            "order alone would find most of the alignment."
            if agreed > 0.5 * targets
            else "where it looks is in the words, not in the order."
        ),
        f"IBM Model 1, {ITERATIONS} iterations over {len(rows):,} pairs; its likelihood rose by "
        f"{_nats(model, targets=len(other.ids)):.2f} nats a word. It gives the largest weight "
        f"{np.mean(surest):.2f} on average."
        + (f" {empty} pairs with an empty side were left out." if empty else ""),
    )
    shaded = tuple(_shaded(rows[m], m, one, other, model) for m in some[:SHADED])
    return Section(
        "alignment",
        "Where attention will look",
        sentences,
        shaded=shaded,
        shaded_title="Source words by the attention that the target word in front is predicted to "
        "pay them",
        tables=(first,),
    )


def _words(sentence: str) -> list[str]:
    return _WORDS.findall(sentence.lower())


def _nats(model: ibm1.Model1, targets: int) -> float:
    return float((model.log_likelihoods[-1] - model.log_likelihoods[0]) / targets)


def _first_pairs(
    asked: Asked[ParallelText],
    rows: list[tuple[list[str], list[str]]],
    model: ibm1.Model1,
    source_words: tuple[str, ...],
    target_words: tuple[str, ...],
) -> Table:
    """Rank word pairs by Trans(o|i) × how often i stands there: what training sees first."""
    counts = Counter(word for x, _ in rows for word in x)
    table = model.translation.tocoo()
    often = np.array([counts[word] for word in source_words])
    enough = often[table.row] >= SEEN
    row, column, value = table.row[enough], table.col[enough], table.data[enough]
    sure = value > 0.5
    row, column, value = row[sure], column[sure], value[sure]
    order = np.argsort(-often[row], kind="stable")
    chosen = [(i, "first") for i in order[:FIRST]] + [(i, "last") for i in order[-FIRST:]]
    languages = asked.data.languages
    cells = tuple(
        (
            source_words[row[i]],
            target_words[column[i]],
            round(float(value[i]), 3),
            int(often[row[i]]),
            when,
        )
        for i, when in chosen
    )
    return Table(
        "word-pairs",
        "Word pairs that will be learned first and last, of those with one translation",
        (languages[0], languages[1], "Trans(target|source)", "times seen", "learned"),
        cells,
    )


def _shaded(pair, number, one, other, model) -> ShadedText:  # type: ignore[no-untyped-def]
    x, y = pair
    ids = one.ids[one.starts[number] : one.starts[number + 1]]
    goals = other.ids[other.starts[number] : other.starts[number + 1]]
    alpha = model.alpha(ids, goals)
    surest = int(alpha.max(axis=1).argmax())
    return ShadedText(tuple(x), alpha[surest], f"{y[surest]} ←")
