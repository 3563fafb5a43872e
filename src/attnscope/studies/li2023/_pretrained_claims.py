"""Statements about topics in trained language models, each beside a model that was not trained."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from attnscope.claims import above
from attnscope.studies.old import Claim
from attnscope.claims.claim import Statistic
from attnscope.probes.topic_pairs import DIFFERENT, SAME, TOGETHER, Interval
from attnscope.studies.li2023._pretrained_means import Readings, labels_of, of_role

TWIN = "the same model with random weights"
TABLE1, TABLE2, TABLE5 = "Li 2023, Table 1", "Li 2023, Table 2", "Li 2023, Table 5"
LOWER = "lower end of the interval over documents (95 % for all thresholds together)"

DECIDED = (
    "end of the interval over documents nearer to the criterion, if all thresholds lie on one side "
    "of it (95 % for all thresholds together); without a value otherwise"
)
WIDE = (
    "The interval over documents contains equality at some threshold, so this corpus is too small."
)


def claims() -> tuple[Claim, ...]:
    """Return the claims of the study."""
    return (
        Claim(
            "attention",
            "In a trained model words of one topic attend to each other more than words of two, "
            "at every threshold, topics without overlap.",
            TABLE1,
            "ratio 1.32, 1.28, 1.22 (Bert)",
            _each("trained", _lowest_ratio),
            above(1),
            TWIN,
            _each("twin", _lowest_ratio),
            measure=f"smallest over thresholds of the ratio's {LOWER}",
        ),
        Claim(
            "attention-overlap",
            "The same holds when a word may stand for several topics.",
            TABLE5,
            "ratio 1.23, 1.17, 1.13 (Bert)",
            _each("trained", lambda one, tree: _lowest_ratio(one, tree, overlap=True)),
            above(1),
            TWIN,
            _each("twin", lambda one, tree: _lowest_ratio(one, tree, overlap=True)),
            measure=f"smallest over thresholds of the ratio's {LOWER}",
        ),
        Claim(
            "random-twin",
            "A model with random weights has no topics in its attention: the interval of the "
            "ratio contains 1 at every threshold.",
            TABLE1,
            "ratio 0.99943, 0.99996, 1.00007",
            _each("twin", _depth_of_one),
            above(0),
            "the trained model",
            _each("trained", _depth_of_one),
            measure="smallest over thresholds of the distance from 1 to the nearer end of the "
            "interval, negative if 1 lies outside",
        ),
        Claim(
            "beyond-document-and-distance",
            "Nor is the ratio due to documents in which all attention is larger, nor to words of "
            "one topic standing nearer to each other.",
            "not in the paper",
            "not measured",
            _each("trained", _lowest_standardised),
            above(1),
            TWIN,
            _each("twin", _lowest_standardised),
            measure="smallest over thresholds of two ratios, with every document as its own "
            f"yardstick and at equal distance: their {LOWER}",
        ),
        Claim(
            "beyond-chance",
            "The ratio is larger than every one with topics dealt to the words at random.",
            "not in the paper",
            "not measured",
            _each("trained", _over_shuffled),
            above(1),
            TWIN,
            _each("twin", _over_shuffled),
            reason="Topics dealt at random leave so few pairs of one topic that a handful decides "
            "their mean. In the first 350 articles of WikiText-2, at threshold 0.0005, a shuffle "
            "has 128 such pairs (median) where the real topics have 5,137, and five pairs of words "
            "make 68 % of them. So shuffled ratios spread widely around 1; the table of controls "
            "has their mean and range.",
            measure="smallest over thresholds of the ratio over the largest of 20 shuffles",
        ),
        Claim(
            "cosine",
            "Embeddings of words of one topic are more alike than those of words of two.",
            TABLE1,
            "ratio of cosines 1.21, 1.13, 1.11 (Bert)",
            _each("trained", _lowest_gap),
            above(0),
            TWIN,
            _each("twin", _lowest_gap),
            measure="smallest over thresholds of the difference of mean cosines before any layer: "
            f"its {LOWER}",
        ),
        Claim(
            "fewer-words-clearer-topics",
            "The ratio of attention falls as the threshold admits more words.",
            TABLE1,
            "1.32 at 0.0005, 1.22 at 0.002 (Bert)",
            _each("trained", lambda one, tree: _decided(_fall(one, tree))),
            above(0),
            TWIN,
            _each("twin", lambda one, tree: _low(_fall(one, tree))),
            reason=WIDE,
            measure=f"ratio at the lowest threshold minus that at the highest: {DECIDED}",
        ),
        Claim(
            "overlap-weakens",
            "The ratio of attention is larger without overlap, at every threshold.",
            f"{TABLE1}, {TABLE5}",
            "1.32 over 1.23, 1.28 over 1.17, 1.22 over 1.13 (Bert)",
            _each("trained", lambda one, tree: _decided(_overlap_loss(one, tree))),
            above(0),
            TWIN,
            _each("twin", lambda one, tree: _low(_overlap_loss(one, tree))),
            reason=f"{WIDE} A few hundred articles give 100 topics that share many of their first "
            "words: dropping these also drops pairs that do belong together.",
            measure=f"ratio without overlap minus that with overlap: {DECIDED}",
        ),
        Claim(
            "topics-not-co-occurrence",
            "Embeddings of words of one topic are more alike than those of words that are often "
            "together.",
            TABLE2,
            "cosine 0.468 over 0.316, 0.461 over 0.311, 0.425 over 0.323",
            _each("trained", lambda one, tree: _decided(_gaps(one, tree, TOGETHER))),
            above(0),
            TWIN,
            _each("twin", lambda one, tree: _low(_gaps(one, tree, TOGETHER))),
            reason=f"{WIDE} The paper does not print which pairs co-occur the most; here they are "
            "of different topics and are counted in whole articles.",
            measure=f"difference of mean cosines before any layer: {DECIDED}",
        ),
        Claim(
            "co-occurrence-in-attention",
            "Attention between words that are often together is larger than between words of one "
            "topic.",
            TABLE2,
            "0.00751 over 0.00659, 0.00695 over 0.00621, 0.00677 over 0.00597",
            _each("trained", lambda one, tree: _decided(_together(one, tree), 1)),
            above(1),
            TWIN,
            _each("twin", lambda one, tree: _low(_together(one, tree))),
            reason="Pairs that co-occur attend to each other more than other pairs of different "
            "topics, and not more than pairs of one topic; the table of co-occurrence has all "
            "three means. The paper does not print its rule for such pairs; here they share no "
            "topic and are counted in whole articles.",
            measure=f"ratio of the two: {DECIDED}",
        ),
    )


Number = Callable[[Readings, xr.DataTree], float]


def _each(role: str, number: Number) -> Statistic:
    """Return one number for every model of a role and every seed."""
    return lambda tree: np.array([number(one, tree) for one in of_role(tree, role)])


def _lowest_ratio(one: Readings, tree: xr.DataTree, overlap: bool = False) -> float:
    return min(float(one.ratio(n).low) for n in labels_of(tree, overlap).values())


def _depth_of_one(one: Readings, tree: xr.DataTree) -> float:
    found = [one.ratio(number) for number in labels_of(tree).values()]
    return min(float(min(each.high - 1, 1 - each.low)) for each in found)


def _lowest_standardised(one: Readings, tree: xr.DataTree) -> float:
    labels = labels_of(tree).values()
    return min(float(each.low) for n in labels for each in (one.within(n), one.near(n)))


def _over_shuffled(one: Readings, tree: xr.DataTree) -> float:
    return min(
        float(one.ratio(number).value / one.shuffled(number).max())
        for number in labels_of(tree).values()
    )


def _lowest_gap(one: Readings, tree: xr.DataTree) -> float:
    return _low(_gaps(one, tree, DIFFERENT))


def _gaps(one: Readings, tree: xr.DataTree, over: int) -> list[Interval]:
    return [one.vector_gap(number, over) for number in labels_of(tree).values()]


def _fall(one: Readings, tree: xr.DataTree) -> list[Interval]:
    labels = labels_of(tree)
    return [one.ratio_difference(labels[min(labels)], labels[max(labels)])]


def _overlap_loss(one: Readings, tree: xr.DataTree) -> list[Interval]:
    without, with_ = labels_of(tree), labels_of(tree, overlap=True)
    return [one.ratio_difference(number, with_[t]) for t, number in without.items()]


def _together(one: Readings, tree: xr.DataTree) -> list[Interval]:
    return [one.ratio(number, over=SAME, kind=TOGETHER) for number in labels_of(tree).values()]


def _low(found: list[Interval]) -> float:
    return min(float(each.low) for each in found)


def _decided(found: list[Interval], null: float = 0.0) -> float:
    """Return the lowest end if all lie above, the highest if one lies below, else no number."""
    if _low(found) > null:
        return _low(found)
    highest = min(float(each.high) for each in found)
    return highest if highest <= null else math.nan
