"""The paper's tables with rows for the models that were read, and what stands behind a ratio."""

from __future__ import annotations

import xarray as xr

from attnscope.probes.topic_pairs import DIFFERENT, KINDS, SAME, TOGETHER, Interval
from attnscope.report.page import Cell, Table
from attnscope.studies.li2023 import _pretrained_paper as paper
from attnscope.studies.li2023._pretrained_means import Readings, facts, labels_of, readings

HEAD = ("model", "threshold")


def tables(tree: xr.DataTree) -> list[Table]:
    """Return all tables."""
    return [
        *printed(tree),
        _means(tree),
        _controls(tree),
        _depths(tree),
        _heads(tree),
        _corpus(tree),
        _topics(tree),
    ]


def printed(tree: xr.DataTree) -> list[Table]:
    """Return the paper's own tables with our rows: 1, 5 and 2."""
    return [_ratios(tree, False), _ratios(tree, True), _together(tree)]


def _shown(tree: xr.DataTree) -> list[Readings]:
    return [one for one in readings(tree) if one.seed == 0 or one.case.role != "earlier"]


def _name(one: Readings) -> str:
    return one.case.name if one.seed == 0 else f"{one.case.name}, seed {one.seed}"


def _ratios(tree: xr.DataTree, overlap: bool) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, known in paper.published(overlap).items():
        for threshold, row in known.items():
            rows.append((f"{name} (published)", threshold, *map(_published, row), None, None))
    for one in _shown(tree):
        for threshold, number in labels_of(tree, overlap).items():
            rows.append(
                (
                    _name(one),
                    threshold,
                    _text(one.vector_ratio(number, 0)),
                    _text(one.vector_ratio(number, 1)),
                    _text(one.ratio(number)),
                    int(one.attention[1][:, number, SAME].sum()),
                    int(one.attention[1][:, number, DIFFERENT].sum()),
                )
            )
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


def _together(tree: xr.DataTree) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for number, threshold in enumerate(paper.THRESHOLDS):
        cells = (*paper.TOGETHER_ATTENTION[number], *paper.TOGETHER_COSINE[number])
        same, often, same_cosine, often_cosine = map(_published, cells)
        rows.append(("Bert (published)", threshold, same, often, None, same_cosine, often_cosine))
    for one in _shown(tree):
        for threshold, label in labels_of(tree).items():
            rows.append(
                (
                    _name(one),
                    threshold,
                    _text(one.mean_attention(label, SAME)),
                    _text(one.mean_attention(label, TOGETHER)),
                    _text(one.mean_attention(label, DIFFERENT)),
                    _text(one.mean_vectors(label, SAME)),
                    _text(one.mean_vectors(label, TOGETHER)),
                )
            )
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


def _means(tree: xr.DataTree) -> Table:
    """Return both means: ratios of what is near zero say little."""
    rows: list[tuple[Cell, ...]] = []
    for one in _shown(tree):
        for overlap in (False, True):
            for threshold, label in labels_of(tree, overlap).items():
                cells = [
                    _text(one.mean_vectors(label, kind, measure))
                    for measure in (0, 1)
                    for kind in (SAME, DIFFERENT)
                ]
                rows.append((_name(one), threshold, "yes" if overlap else "no", *cells))
    return Table(
        "means",
        "Both means behind the ratios of embeddings, before any layer",
        (
            *HEAD,
            "overlap",
            "cosine, same topic",
            "cosine, different topics",
            "dot product, same topic",
            "dot product, different topics",
        ),
        tuple(rows),
    )


def _controls(tree: xr.DataTree) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in _shown(tree):
        for threshold, label in labels_of(tree).items():
            dealt = one.shuffled(label)
            rows.append(
                (
                    _name(one),
                    threshold,
                    _text(one.ratio(label)),
                    _text(one.within(label)),
                    _text(one.near(label)),
                    f"{dealt.mean():.3f} ({dealt.min():.3f} to {dealt.max():.3f})",
                )
            )
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


def _depths(tree: xr.DataTree) -> Table:
    middle = _middle(tree)
    rows = [
        (
            _name(one),
            "embedding" if depth == 0 else f"hidden state {depth - 1}",
            _text(one.mean_vectors(middle[1], SAME, 0, depth)),
            _text(one.mean_vectors(middle[1], DIFFERENT, 0, depth)),
            _text(one.vector_ratio(middle[1], 0, depth)),
        )
        for one in _shown(tree)
        for depth in range(one.depths)
    ]
    return Table(
        "cosine-by-depth",
        f"Mean cosine between words at every depth, threshold {middle[0]:g}, no overlap",
        ("model", "depth", "same topic", "different topics", "ratio"),
        tuple(rows),
    )


def _heads(tree: xr.DataTree) -> Table:
    rows: list[tuple[Cell, ...]] = []
    middle = _middle(tree)
    for one in _shown(tree):
        if one.case.role == "earlier":
            continue
        found = one.head_ratio(middle[1])
        layers, heads = one.shape
        for layer in range(layers):
            for head in range(heads):
                ends = (found.low[layer, head], found.high[layer, head])
                value = float(found.value[layer, head])
                rows.append((_name(one), layer, head, value, *map(float, ends)))
    return Table(
        "heads",
        f"Ratio of attention of every head, threshold {middle[0]:g}, no overlap",
        ("model", "layer", "head", "same over different", "low", "high"),
        tuple(rows),
    )


def _corpus(tree: xr.DataTree) -> Table:
    known = facts(tree)
    rows: list[tuple[Cell, ...]] = [
        ("corpus", known["corpus"]),
        ("vocabulary of the topics (words)", known["vocabulary"]),
        ("topics", known["topics"]),
        ("mean coherence of the topics (NPMI)", known.get("coherence")),
        ("kinds of pairs", ", ".join(KINDS)),
    ]
    for one in known["labels"]:
        words = f"{one['words']} words, {one['pairs']} pairs of one topic"
        rows.append((f"threshold {one['name']}", words))
    for each in readings(tree):
        documents = len(each.data["group"])
        words = f"{documents} documents, {each.data['words'].mean():.1f} words with a topic each"
        rows.append((f"{_name(each)} read", words))
    return Table("corpus", "What was read", ("what", "how much"), tuple(rows))


def _topics(tree: xr.DataTree) -> Table:
    tops = facts(tree).get("top_words", [])
    rows = tuple((number, words) for number, words in enumerate(tops))
    return Table("topics", "The ten most probable words of every topic", ("topic", "words"), rows)


def _middle(tree: xr.DataTree) -> tuple[float, int]:
    """Return the middle threshold and its label."""
    known = sorted(labels_of(tree).items())
    return known[len(known) // 2]


def _published(value: float) -> str:
    return f"{value:g}"


def _text(found: Interval) -> str:
    value, low, high = (float(each) for each in (found.value, found.low, found.high))
    digits = 5 if abs(value) < 0.1 else 4 if abs(value - 1) < 0.02 else 3
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
