"""Attention between words of one topic and of different topics (Li 2023) on any model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.probes.topics.topic_attention import topic_attention
from attnscope.watching.moment import Moment, Need, Reading
from attnscope.watching.readings.offer import Layer, Offer, WatchedModel, array, layers, stacked

Topics = str | Path | Mapping[int, int] | Sequence[int] | np.ndarray


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    lacks = "topics of words: topics=..." if watched.topics is None else watched.lacks_words
    needs: frozenset[Need] = frozenset({"attention", "probe"})

    def table(moment: Moment, ratio: bool) -> Tensor | None:
        assert watched.topics is not None
        assert moment.evaluation.ids is not None
        ids = array(moment.evaluation.ids)
        known = np.where(ids < len(watched.topics), ids, -1)
        of = np.where(known >= 0, watched.topics[known], -1)
        return stacked([_kinds(layer, ids, of, ratio) for layer in layers(moment.evaluation)])

    kinds = Reading(
        "topic_attention",
        lambda moment: table(moment, False),
        ("layer", "head", "kind"),
        needs,
        meaning="mean attention, times length over 100, between positions of the same word, of "
        "different words of one topic, and of words of different topics",
        coords={"kind": ("same word", "same topic", "different topics")},
    )
    ratio = Reading(
        "topic_ratio",
        lambda moment: table(moment, True),
        ("layer", "head"),
        needs,
        meaning="mean attention between different words of one topic over that between words of "
        "different topics; 1 without topic structure",
    )
    return [Offer(kinds, False, lacks), Offer(ratio, True, lacks)]


def _kinds(layer: Layer | None, ids: np.ndarray, of: np.ndarray, ratio: bool) -> np.ndarray | None:
    if layer is None:
        return None
    weights, queries, keys = layer.weights, *layer.visible.shape[1:]
    if queries != keys or ids.shape != layer.asking.shape:
        return np.full((weights.shape[1], *(() if ratio else (3,))), np.nan)
    found = topic_attention(
        weights.swapaxes(-1, -2),
        ids,
        np.where(layer.asking, of, -1),
        layer.asking.sum(axis=-1),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return found.ratio if ratio else found.kinds


MOST = 100_000_000
"""No vocabulary has words, and no corpus topics, of a higher number."""


def read_topics(topics: Topics) -> np.ndarray:
    """Return the topic of each word number, -1 for words without one.

    Args:
        topics: topics by word number, as a mapping or a sequence; or a file of them: JSON with such
            a mapping or list, or text with a word number and a topic on each line.

    Raises:
        AttnscopeError: the file cannot be read, or something in it is not a number.
    """
    source = f"topics='{topics}'" if isinstance(topics, str | Path) else "topics"
    given: object = topics
    if isinstance(topics, str | Path):
        given = _read_file(Path(topics), source)
    try:
        if isinstance(given, Mapping):
            pairs = {int(word): int(topic) for word, topic in given.items()}
        else:
            listed = np.asarray(given)
            if listed.ndim != 1 or not np.issubdtype(listed.dtype, np.integer):
                raise ValueError(f"an array of shape {listed.shape}, {listed.dtype}")
            pairs = {word: int(topic) for word, topic in enumerate(listed)}
        if not pairs or min(pairs) < 0:
            raise ValueError("no words" if not pairs else f"word number {min(pairs)}")
        if max(*pairs, *map(abs, pairs.values())) > MOST:
            raise ValueError(f"a number above {MOST:,}")
    except (TypeError, ValueError, OverflowError) as error:
        raise AttnscopeError(
            f"{source}: expected topic numbers by word number ({error})."
        ) from error
    table = np.full(max(pairs) + 1, -1)
    table[list(pairs)] = list(pairs.values())
    return table


def _read_file(path: Path, source: str) -> object:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise AttnscopeError(f"{source}: the file cannot be read ({error}).") from error
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise AttnscopeError(f"{source}: expected JSON ({error}).") from error
    pairs = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.replace(",", " ").split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 2:
            raise AttnscopeError(
                f"{source}, line {number} is '{line}': expected a word number and a topic."
            )
        pairs[fields[0]] = fields[1]
    return pairs
