"""From recorded sums to means, ratios and their intervals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from attnscope.probes.topic_pairs import (
    DIFFERENT,
    SAME,
    Interval,
    at_equal_distance,
    interval,
    mean,
    redrawn,
    within_documents,
)
from attnscope.studies.li2023._pretrained_cases import Case

DRAWS = 2000
"""How often documents are drawn again."""
MISS = 0.05
"""All thresholds together miss the truth so often: each interval is Bonferroni's share of it."""


@dataclass(frozen=True, eq=False)
class Readings:
    """All documents of one run.

    Args:
        case: which model.
        seed: of the run.
        data: the observables of this run, documents that were not reached left out.
        level: of the intervals.
    """

    case: Case
    seed: int
    data: dict[str, np.ndarray]
    level: float

    @cached_property
    def weights(self) -> np.ndarray:
        """How often each document is drawn, ``(draw, document)``."""
        return redrawn(self.data["group"], DRAWS)

    @cached_property
    def attention(self) -> tuple[np.ndarray, np.ndarray]:
        """Sums over layers and heads, and pairs, ``(document, label, kind)``."""
        return (
            np.nanmean(self.data["attention"], axis=(-1, -2)),
            np.nanmean(self.data["pairs"], axis=-1),
        )

    def mean_attention(self, label: int, kind: int) -> Interval:
        """Return mean attention of a kind of pair."""
        sums, counts = (each[:, label, kind] for each in self.attention)
        return self._interval(mean(sums, counts), mean(sums, counts, self.weights))

    def ratio(self, label: int, over: int = DIFFERENT, kind: int = SAME) -> Interval:
        """Return attention of one kind of pair over that of another, over all layers and heads."""
        value, drawn = self._ratio(label, kind, over)
        return self._interval(value, drawn)

    def ratio_difference(self, first: int, second: int) -> Interval:
        """Return how much larger the ratio is with one of the labels than with another."""
        one, one_drawn = self._ratio(first, SAME, DIFFERENT)
        two, two_drawn = self._ratio(second, SAME, DIFFERENT)
        return self._interval(one - two, one_drawn - two_drawn)

    def _ratio(self, label: int, kind: int, over: int) -> tuple[np.ndarray, np.ndarray]:
        sums, counts = (each[:, label] for each in self.attention)
        pairs = [(sums[:, each], counts[:, each]) for each in (kind, over)]
        value = mean(*pairs[0]) / mean(*pairs[1])
        drawn = mean(*pairs[0], self.weights) / mean(*pairs[1], self.weights)
        return value, drawn

    def head_ratio(self, label: int) -> Interval:
        """Return the ratio of every layer and head."""
        sums, counts = self.data["attention"][:, label], self.data["pairs"][:, label, :, :, None]
        same, other = ((sums[:, k], counts[:, k]) for k in (SAME, DIFFERENT))
        return self._interval(
            mean(*same) / mean(*other),
            mean(*same, self.weights) / mean(*other, self.weights),
        )

    def within(self, label: int) -> Interval:
        """Return the ratio with every document as its own yardstick."""
        sums, counts = (each[:, label] for each in self.attention)
        return self._interval(
            within_documents(sums, counts), within_documents(sums, counts, self.weights)
        )

    def near(self, label: int) -> Interval:
        """Return the ratio at equal distance."""
        sums, counts = (self.data[name][:, label] for name in ("by_distance", "distance_pairs"))
        return self._interval(
            at_equal_distance(sums, counts), at_equal_distance(sums, counts, self.weights)
        )

    def profile(self, label: int) -> np.ndarray:
        """Return mean attention by distance, ``(topic kind, bin)``."""
        return mean(self.data["by_distance"][:, label], self.data["distance_pairs"][:, label])

    def shuffled(self, label: int) -> np.ndarray:
        """Return the ratio for every time that topics were dealt to words at random."""
        sums, counts = (self.data[name][:, label] for name in ("shuffled", "shuffled_pairs"))
        means = mean(sums, counts)
        return np.asarray(means[:, SAME] / means[:, DIFFERENT])

    def mean_vectors(self, label: int, kind: int, measure: int = 0, depth: int = 0) -> Interval:
        """Return the mean cosine (measure 0) or dot product (1) of a kind of pair at a depth."""
        sums, counts = self._vectors(label, kind, measure, depth)
        return self._interval(mean(sums, counts), mean(sums, counts, self.weights))

    def vector_gap(
        self, label: int, over: int = DIFFERENT, measure: int = 0, depth: int = 0
    ) -> Interval:
        """Return how much larger the mean is for one topic than for another kind of pair."""
        same, other = (self._vectors(label, k, measure, depth) for k in (SAME, over))
        return self._interval(
            mean(*same) - mean(*other),
            mean(*same, self.weights) - mean(*other, self.weights),
        )

    def vector_ratio(self, label: int, measure: int = 0, depth: int = 0) -> Interval:
        """Return the mean for one topic over that for two; unstable where the latter is near 0."""
        same, other = (self._vectors(label, k, measure, depth) for k in (SAME, DIFFERENT))
        return self._interval(
            mean(*same) / mean(*other),
            mean(*same, self.weights) / mean(*other, self.weights),
        )

    def _vectors(
        self, label: int, kind: int, measure: int, depth: int
    ) -> tuple[np.ndarray, np.ndarray]:
        sums = self.data["vectors"][:, label, kind, depth, measure]
        return sums, self.data["vector_pairs"][:, label, kind]

    @property
    def depths(self) -> int:
        """How many depths of vectors this model has."""
        return int((~np.isnan(self.data["vectors"][0, 0, 0, :, 0])).sum())

    @property
    def shape(self) -> tuple[int, int]:
        """How many layers and heads this model has."""
        known = ~np.isnan(self.data["attention"][0, 0, 0])
        return int(known.any(axis=1).sum()), int(known.any(axis=0).sum())

    def _interval(self, value: np.ndarray, drawn: np.ndarray) -> Interval:
        return interval(value, drawn, self.level)


def readings(tree: xr.DataTree) -> list[Readings]:
    """Return what was read, a run each, in the order of the runs; runs not begun are left out."""
    cases = {one["name"]: Case(**one) for one in facts(tree)["cases"]}
    data = tree["observables"].to_dataset()
    level = 1 - MISS / len(facts(tree)["thresholds"])
    found = []
    for run in range(data.sizes["run"]):
        one = data.isel(run=run)
        reached = ~np.isnan(one["group"].to_numpy())
        if reached.sum() < 2:
            continue
        values = {str(n): a.to_numpy()[reached].astype(float) for n, a in one.data_vars.items()}
        case, seed = cases[str(one["case"].item())], int(one["seed"].item())
        found.append(Readings(case, seed, values, level))
    return found


def facts(tree: xr.DataTree) -> dict[str, Any]:
    """Return what the study wrote down about models, corpus and topics."""
    known: dict[str, Any] = json.loads(tree["data"].attrs["facts"])
    return known


def of_role(tree: xr.DataTree, *roles: str) -> list[Readings]:
    """Return the runs of some roles."""
    return [one for one in readings(tree) if one.case.role in roles]


def labels_of(tree: xr.DataTree, overlap: bool = False) -> dict[float, int]:
    """Return the number of the label of each threshold."""
    names = facts(tree)["labels"]
    return {
        float(one["threshold"]): number
        for number, one in enumerate(names)
        if bool(one["overlap"]) is overlap
    }
