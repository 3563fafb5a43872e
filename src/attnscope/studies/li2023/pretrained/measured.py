"""From recorded sums to means, ratios and their intervals, model by model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import xarray as xr

from attnscope.probes.bootstrap import Estimate, pooled_mean, resample
from attnscope.probes.topics.topic_pairs import KINDS, at_equal_distance, within_documents
from attnscope.studies.li2023.pretrained.cases import Case
from attnscope.trajectory import Readings

SAME, DIFFERENT, COOCCURRING = KINDS
DRAWS = 2000
"""Number of bootstrap samples of the documents."""
MISS = 0.05
"""All thresholds together miss the truth so often: each interval is Bonferroni's share of it."""


@dataclass(frozen=True, eq=False)
class Measured:
    """All documents of one run.

    Args:
        case: which model.
        seed: of the run.
        data: the readings of this run along ``document``, those that were not reached left out.
        labels: how topics are given to words, as the study wrote it down.
    """

    case: Case
    seed: int
    data: xr.Dataset
    labels: list[dict[str, Any]]

    @property
    def name(self) -> str:
        """What the run is called in tables."""
        return self.case.name if self.seed == 0 else f"{self.case.name}, seed {self.seed}"

    def thresholds(self, overlap: bool = False) -> dict[float, str]:
        """Return the label of each threshold."""
        own = [each for each in self.labels if bool(each["overlap"]) is overlap]
        return {float(each["threshold"]): each["name"] for each in own}

    @property
    def middle(self) -> tuple[float, str]:
        """The middle threshold without overlap, and its label."""
        known = sorted(self.thresholds().items())
        return known[len(known) // 2]

    @cached_property
    def weights(self) -> np.ndarray:
        """How often each document is drawn, ``(draw, document)``."""
        return resample(self.data["group"].to_numpy(), DRAWS)

    @cached_property
    def overall(self) -> tuple[xr.DataArray, xr.DataArray]:
        """Attention summed over pairs, and pairs, both averaged over layers and heads."""
        return self.data["attention"].mean(("layer", "head")), self.data["pairs"].mean("layer")

    def attention(self, label: str, kind: str) -> Estimate:
        """Return mean attention of a kind of pair, over all layers and heads."""
        return self._estimate(pooled_mean, *self.overall, label=label, kind=kind)

    def ratio(self, label: str) -> Estimate:
        """Return attention between words of one topic over that between words of two."""
        return self.attention(label, SAME) / self.attention(label, DIFFERENT)

    def head_ratio(self, label: str) -> Estimate:
        """Return the ratio of every layer and head that the model has."""
        layers, heads = self.shape
        sums = self.data["attention"].isel(layer=slice(layers), head=slice(heads))
        pairs = self.data["pairs"].isel(layer=slice(layers)).expand_dims("head", -1)
        same, different = (
            self._estimate(pooled_mean, sums, pairs, label=label, kind=kind)
            for kind in (SAME, DIFFERENT)
        )
        return same / different

    def within(self, label: str) -> Estimate:
        """Return the ratio with every document as its own yardstick."""
        return self._estimate(within_documents, *self.overall, label=label)

    def near(self, label: str) -> Estimate:
        """Return the ratio at equal distance."""
        sums, pairs = self.data["by_distance"], self.data["distance_pairs"]
        return self._estimate(at_equal_distance, sums, pairs, label=label)

    def profile(self, label: str) -> xr.DataArray:
        """Return mean attention by distance, ``(topic_kind, bin)``; NaN without a pair."""
        return self._mean("by_distance", "distance_pairs", label)

    def shuffled(self, label: str) -> np.ndarray:
        """Return the ratio for every time that topics were shuffled among the words."""
        means = self._mean("shuffled", "shuffled_pairs", label)
        ratio = means.sel(topic_kind=SAME) / means.sel(topic_kind=DIFFERENT)
        return np.asarray(ratio.to_numpy())

    def vectors(self, label: str, kind: str, measure: str = "cosine", depth: int = 0) -> Estimate:
        """Return the mean cosine or dot product of a kind of pair at a depth."""
        sums = self.data["vectors"].sel(measure=measure).isel(depth=depth)
        return self._estimate(pooled_mean, sums, self.data["vector_pairs"], label=label, kind=kind)

    def vector_gap(self, label: str, over: str = DIFFERENT, depth: int = 0) -> Estimate:
        """Return how much larger the mean cosine is for one topic than for another kind of pair."""
        return self.vectors(label, SAME, depth=depth) - self.vectors(label, over, depth=depth)

    def vector_ratio(self, label: str, measure: str = "cosine", depth: int = 0) -> Estimate:
        """Return the mean for one topic over that for two; unstable where the latter is near 0."""
        same, other = (self.vectors(label, kind, measure, depth) for kind in (SAME, DIFFERENT))
        return same / other

    @property
    def depths(self) -> int:
        """How many depths of vectors this model has."""
        known = self.data["vectors"].isel(document=0, label=0, kind=0, measure=0).notnull()
        return int(known.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """How many layers and heads this model has."""
        known = self.data["attention"].isel(document=0, label=0, kind=0).notnull()
        return int(known.any("head").sum()), int(known.any("layer").sum())

    def _mean(self, sums: str, counts: str, label: str) -> xr.DataArray:
        total, number = (self.data[n].sel(label=label).sum("document") for n in (sums, counts))
        return total / number

    def _estimate(
        self,
        statistic: Callable[..., np.ndarray],
        sums: xr.DataArray,
        counts: xr.DataArray,
        **where: str,
    ) -> Estimate:
        own, number = (each.sel(where).to_numpy() for each in (sums, counts))
        level = 1 - MISS / len(self.thresholds())
        return Estimate.of(statistic, own, number, self.weights, level)


@lru_cache(maxsize=4)
def measured(run: Readings, *roles: str) -> tuple[Measured, ...]:
    """Return what was read, in the order of the runs; runs that were not begun are left out.

    Args:
        run: the readings.
        roles: of the models; all of them unless given.
    """
    if roles:
        return tuple(one for one in measured(run) if one.case.role in roles)
    known, names = facts(run), run["observables"].data_vars
    every = xr.Dataset({str(name): run.get(str(name)).astype(float) for name in names})
    every = every.assign_coords(label=[each["name"] for each in known["labels"]])
    found = []
    for seed in every["seed"].to_numpy():
        for case in known["cases"]:
            own = every.sel(case=case["name"], seed=seed).dropna("document", subset=["group"])
            if own.sizes["document"] > 1:
                found.append(Measured(Case(**case), int(seed), own, known["labels"]))
    return tuple(found)


def facts(run: Readings) -> dict[str, Any]:
    """Return what the study wrote down about models, corpus and topics."""
    known: dict[str, Any] = json.loads(run["data"].attrs["facts"])
    return known
