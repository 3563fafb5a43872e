"""Statements about topics in trained language models, each beside a model that was not trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attnscope.claims import Claim, above
from attnscope.probes.bootstrap import Estimate
from attnscope.studies.li2023.pretrained.measured import (
    COOCCURRING,
    SAME,
    Measured,
    measured,
)
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.li2023.pretrained.study import Pretrained

TABLE1, TABLE2, TABLE5 = "Li 2023, Table 1", "Li 2023, Table 2", "Li 2023, Table 5"
LOWER = "lower end of the interval over documents (95 % for all thresholds together)"
DECIDED = (
    "end of the interval over documents nearer to the criterion, if all thresholds lie on one side "
    "of it (95 % for all thresholds together); without a value otherwise"
)
WIDE = (
    "The interval over documents contains equality at some threshold, so this corpus is too small."
)


def claims(study: Pretrained) -> tuple[Claim, ...]:
    """Return what the tables say, beside a random twin."""
    trained = partial(
        Claim, given="trained", control=("twin", "the same model with random weights")
    )
    return (
        trained(
            "attention",
            "In a trained model words of one topic attend to each other more than words of two, "
            "at every threshold, topics without overlap.",
            lowest(lambda one: each_threshold(one, one.ratio)),
            holds=above(1),
            source=TABLE1,
            paper="ratio 1.32, 1.28, 1.22 (Bert)",
            measure=f"smallest over thresholds of the ratio's {LOWER}",
        ),
        trained(
            "attention-overlap",
            "The same holds when a word may stand for several topics.",
            lowest(lambda one: each_threshold(one, one.ratio, overlap=True)),
            holds=above(1),
            source=TABLE5,
            paper="ratio 1.23, 1.17, 1.13 (Bert)",
            measure=f"smallest over thresholds of the ratio's {LOWER}",
        ),
        Claim(
            "random-twin",
            "A model with random weights has no topics in its attention: the interval of the "
            "ratio contains 1 at every threshold.",
            each_model(depth_of_one),
            given="twin",
            holds=above(0),
            control=("trained", "the trained model"),
            source=TABLE1,
            paper="ratio 0.99943, 0.99996, 1.00007",
            measure="smallest over thresholds of the distance from 1 to the nearer end of the "
            "interval, negative if 1 lies outside",
        ),
        trained(
            "beyond-document-and-distance",
            "Nor is the ratio due to documents in which all attention is larger, nor to words of "
            "one topic standing nearer to each other.",
            lowest(lambda one: each_threshold(one, one.within) + each_threshold(one, one.near)),
            holds=above(1),
            source="not in the paper",
            paper="not measured",
            measure="smallest over thresholds of two ratios, with every document as its own "
            f"yardstick and at equal distance: their {LOWER}",
        ),
        trained(
            "beyond-chance",
            "The ratio is larger than every one with topics shuffled among the words.",
            each_model(over_shuffled),
            holds=above(1),
            source="not in the paper",
            paper="not measured",
            reason="Shuffled topics leave so few pairs of one topic that a handful decides their "
            "mean. In the first 350 articles of WikiText-2, at threshold 0.0005, a shuffle has 128 "
            "such pairs (median) where the real topics have 5,137, and five pairs of words make "
            "68 % of them. So shuffled ratios spread widely around 1; the table of controls has "
            "their mean and range.",
            measure="smallest over thresholds of the ratio over the largest of 20 shuffles",
        ),
        trained(
            "cosine",
            "Embeddings of words of one topic are more alike than those of words of two.",
            lowest(lambda one: each_threshold(one, one.vector_gap)),
            holds=above(0),
            source=TABLE1,
            paper="ratio of cosines 1.21, 1.13, 1.11 (Bert)",
            measure="smallest over thresholds of the difference of mean cosines before any layer: "
            f"its {LOWER}",
        ),
        trained(
            "fewer-words-clearer-topics",
            "The ratio of attention falls as the threshold admits more words.",
            decided(fall, 0),
            holds=above(0),
            source=TABLE1,
            paper="1.32 at 0.0005, 1.22 at 0.002 (Bert)",
            reason=WIDE,
            measure=f"ratio at the lowest threshold minus that at the highest: {DECIDED}",
        ),
        trained(
            "overlap-weakens",
            "The ratio of attention is larger without overlap, at every threshold.",
            decided(overlap_loss, 0),
            holds=above(0),
            source=f"{TABLE1}, {TABLE5}",
            paper="1.32 over 1.23, 1.28 over 1.17, 1.22 over 1.13 (Bert)",
            reason=f"{WIDE} A few hundred articles give 100 topics that share many of their first "
            "words: dropping these also drops pairs that do belong together.",
            measure=f"ratio without overlap minus that with overlap: {DECIDED}",
        ),
        trained(
            "topics-not-co-occurrence",
            "Embeddings of words of one topic are more alike than those of words that are often "
            "together.",
            decided(lambda one: each_threshold(one, one.vector_gap, COOCCURRING), 0),
            holds=above(0),
            source=TABLE2,
            paper="cosine 0.468 over 0.316, 0.461 over 0.311, 0.425 over 0.323",
            reason=f"{WIDE} The paper does not print which pairs co-occur the most; here they are "
            "of different topics and are counted in whole articles.",
            measure=f"difference of mean cosines before any layer: {DECIDED}",
        ),
        trained(
            "co-occurrence-in-attention",
            "Attention between words that are often together is larger than between words of one "
            "topic.",
            decided(lambda one: each_threshold(one, partial(over_same, one)), 1),
            holds=above(1),
            source=TABLE2,
            paper="0.00751 over 0.00659, 0.00695 over 0.00621, 0.00677 over 0.00597",
            reason="Pairs that co-occur attend to each other more than other pairs of different "
            "topics, and not more than pairs of one topic; the table of co-occurrence has all "
            "three means. The paper does not print its rule for such pairs; here they share no "
            "topic and are counted in whole articles.",
            measure=f"ratio of the two: {DECIDED}",
        ),
    )


Statistic = Callable[[Readings, str], list[float]]
"""Maps readings and a role to one number for every model of that role and every seed."""


def each_model(number: Callable[[Measured], float]) -> Statistic:
    """Return the statistic that is one number for every model."""
    return lambda run, role: [number(one) for one in measured(run, role)]


def lowest(estimates: Callable[[Measured], list[Estimate]]) -> Statistic:
    """Return the statistic that is the lowest end of several intervals."""
    return each_model(lambda one: low(estimates(one)))


def decided(estimates: Callable[[Measured], list[Estimate]], null: float) -> Statistic:
    """Return the statistic that has no value for a trained model if an interval contains ``null``.

    It is the lowest end if all intervals lie above, the highest if one lies below. Of a twin, which
    must fail, it is the lowest end in any case.
    """

    def number(one: Measured) -> float:
        found = estimates(one)
        if one.case.role == "twin" or low(found) > null:
            return low(found)
        highest = smallest(each.high for each in found)
        return highest if highest <= null else math.nan

    return each_model(number)


def low(found: list[Estimate]) -> float:
    """Return the lowest end of several intervals."""
    return smallest(each.low for each in found)


def smallest(values: Iterable[np.ndarray]) -> float:
    """Return the smallest of some numbers; NaN if one is, wherever it stands."""
    return float(np.min([float(value) for value in values]))


def each_threshold(
    one: Measured, reading: Callable[..., Estimate], *given: Any, overlap: bool = False
) -> list[Estimate]:
    """Return a reading at every threshold."""
    return [reading(label, *given) for label in one.thresholds(overlap).values()]


def depth_of_one(one: Measured) -> float:
    """Return how far 1 lies inside the intervals of the ratio."""
    found = each_threshold(one, one.ratio)
    return smallest(end for each in found for end in (each.high - 1, 1 - each.low))


def over_shuffled(one: Measured) -> float:
    """Return the ratio over the largest one of shuffled topics."""
    labels = one.thresholds().values()
    return smallest(one.ratio(label).value / one.shuffled(label).max() for label in labels)


def fall(one: Measured) -> list[Estimate]:
    """Return by how much the ratio falls from the lowest threshold to the highest."""
    labels = one.thresholds()
    return [one.ratio(labels[min(labels)]) - one.ratio(labels[max(labels)])]


def overlap_loss(one: Measured) -> list[Estimate]:
    """Return by how much the ratio falls when topics may overlap, at every threshold."""
    without, overlapping = one.thresholds(), one.thresholds(overlap=True)
    return [one.ratio(label) - one.ratio(overlapping[at]) for at, label in without.items()]


def over_same(one: Measured, label: str) -> Estimate:
    """Return attention between words that co-occur often over that between words of one topic."""
    return one.attention(label, COOCCURRING) / one.attention(label, SAME)
