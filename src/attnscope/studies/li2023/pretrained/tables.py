"""The paper's tables with rows for the models that were read, and what stands behind a ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.bootstrap import Estimate
from attnscope.probes.topics.topic_pairs import KINDS
from attnscope.report import Cell, Table
from attnscope.studies.li2023.pretrained import paper
from attnscope.studies.li2023.pretrained.measured import (
    COOCCURRING,
    DIFFERENT,
    SAME,
    Measured,
    facts,
    measured,
)
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.li2023.pretrained.study import Pretrained

HEAD = ("model", "threshold")
Rows = list[tuple[Cell, ...]]


def tables(study: Pretrained, run: Readings) -> list[Table]:
    """Tabulate the paper's rows with ours, and what stands behind them."""
    shown = _shown(run)
    return [
        *printed(study, run),
        _means(shown),
        _controls(shown),
        _depths(shown),
        _heads([one for one in shown if one.case.role != "earlier"]),
        _corpus(run),
        _topics(run),
    ]


def printed(study: Pretrained, run: Readings) -> list[Table]:
    """Return the paper's own tables with our rows: 1, 5 and 2."""
    shown = _shown(run)
    return [_ratios(shown, False), _ratios(shown, True), _cooccurring(shown)]


def _shown(run: Readings) -> list[Measured]:
    return [one for one in measured(run) if one.seed == 0 or one.case.role != "earlier"]


def _ratios(shown: list[Measured], overlap: bool) -> Table:
    rows: Rows = [
        (f"{name} (published)", threshold, *map(_published, row), None, None)
        for name, known in paper.published(overlap).items()
        for threshold, row in known.items()
    ]
    for one in shown:
        for threshold, label in one.thresholds(overlap).items():
            found = (
                one.vector_ratio(label),
                one.vector_ratio(label, "dot product"),
                one.ratio(label),
            )
            pairs = one.overall[1].sel(label=label).sum("document")
            counts = (int(pairs.sel(kind=kind)) for kind in (SAME, DIFFERENT))
            rows.append((one.name, threshold, *map(_text, found), *counts))
    what = "topics can overlap (Table 5)" if overlap else "topics do not overlap (Table 1)"
    return Table(
        "table5-overlap" if overlap else "table1-no-overlap",
        f"Same topic over different topics, {what}; intervals over documents, 95 % for all "
        "thresholds together",
        (
            *HEAD,
            "embedding cosine",
            "embedding dot product",
            "attention",
            "same-topic pairs",
            "different-topic pairs",
        ),
        tuple(rows),
    )


def _cooccurring(shown: list[Measured]) -> Table:
    rows: Rows = []
    known = zip(
        paper.THRESHOLDS, paper.COOCCURRING_ATTENTION, paper.COOCCURRING_COSINE, strict=True
    )
    for threshold, attention, cosine in known:
        cells = (*map(_published, attention), None, *map(_published, cosine))
        rows.append(("Bert (published)", threshold, *cells))
    for one in shown:
        for threshold, label in one.thresholds().items():
            found = (
                *(one.attention(label, kind) for kind in (SAME, COOCCURRING, DIFFERENT)),
                *(one.vectors(label, kind) for kind in (SAME, COOCCURRING)),
            )
            rows.append((one.name, threshold, *map(_text, found)))
    return Table(
        "table2-co-occurrence",
        "Words of one topic, and words of different topics that are most often together (Table 2)",
        (
            *HEAD,
            "attention, same topic",
            "attention, co-occurring",
            "attention, different topics",
            "cosine, same topic",
            "cosine, co-occurring",
        ),
        tuple(rows),
    )


def _means(shown: list[Measured]) -> Table:
    """Return both means: ratios of what is near zero say little."""
    columns = [(kind, what) for what in ("cosine", "dot product") for kind in (SAME, DIFFERENT)]
    rows: Rows = [
        (one.name, threshold, said, *(_text(one.vectors(label, *each)) for each in columns))
        for one in shown
        for overlap, said in ((False, "no"), (True, "yes"))
        for threshold, label in one.thresholds(overlap).items()
    ]
    return Table(
        "means",
        "Both means behind the ratios of embeddings, before any layer",
        (*HEAD, "overlap", *(f"{measure}, {kind}" for kind, measure in columns)),
        tuple(rows),
    )


def _controls(shown: list[Measured]) -> Table:
    rows: Rows = []
    for one in shown:
        for threshold, label in one.thresholds().items():
            found = map(_text, (one.ratio(label), one.within(label), one.near(label)))
            values = one.shuffled(label)
            shuffled = f"{values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"
            rows.append((one.name, threshold, *found, shuffled))
    return Table(
        "controls",
        "The ratio of attention, and what else it could be due to; topics do not overlap",
        (
            *HEAD,
            "all pairs",
            "every document its own yardstick",
            "at equal distance",
            "topics shuffled (20 times: mean, range)",
        ),
        tuple(rows),
    )


def _depths(shown: list[Measured]) -> Table:
    threshold, label = shown[0].middle
    rows = [
        (
            one.name,
            "embedding" if depth == 0 else f"hidden state {depth - 1}",
            *(_text(one.vectors(label, kind, depth=depth)) for kind in (SAME, DIFFERENT)),
            _text(one.vector_ratio(label, depth=depth)),
        )
        for one in shown
        for depth in range(one.depths)
    ]
    return Table(
        "cosine-by-depth",
        f"Mean cosine between words at every depth, threshold {threshold:g}, no overlap",
        ("model", "depth", SAME, DIFFERENT, "ratio"),
        tuple(rows),
    )


def _heads(shown: list[Measured]) -> Table:
    threshold, label = shown[0].middle
    rows: Rows = []
    for one in shown:
        found = one.head_ratio(label)
        for place in np.ndindex(*one.shape):
            ends = (float(each[place]) for each in (found.value, found.low, found.high))
            rows.append((one.name, *place, *ends))
    return Table(
        "heads",
        f"Ratio of attention of every head, threshold {threshold:g}, no overlap",
        ("model", "layer", "head", "same over different", "low", "high"),
        tuple(rows),
    )


def _corpus(run: Readings) -> Table:
    known = facts(run)
    rows: Rows = [
        ("corpus", known["corpus"]),
        ("vocabulary of the topics (words)", known["vocabulary"]),
        ("topics", known["topics"]),
        ("mean coherence of the topics (NPMI)", known.get("coherence")),
        ("kinds of pairs", ", ".join(KINDS)),
    ]
    for each in known["labels"]:
        words = f"{each['words']} words, {each['pairs']} pairs of one topic"
        rows.append((f"threshold {each['name']}", words))
    for one in measured(run):
        count = one.data["words"]
        words = f"{count.size} documents, {float(count.mean()):.1f} words with a topic each"
        rows.append((f"{one.name} read", words))
    return Table("corpus", "What was read", ("what", "how much"), tuple(rows))


def _topics(run: Readings) -> Table:
    rows = tuple(enumerate(facts(run).get("top_words", [])))
    return Table("topics", "The ten most probable words of every topic", ("topic", "words"), rows)


def _published(value: float) -> str:
    return f"{value:g}"


def _text(found: Estimate) -> str:
    value, low, high = (float(each) for each in (found.value, found.low, found.high))
    digits = 5 if abs(value) < 0.1 else 4 if abs(value - 1) < 0.02 else 3
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
