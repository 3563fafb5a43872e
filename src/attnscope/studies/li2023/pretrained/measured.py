"""From recorded sums to means, ratios and their intervals, model by model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
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
    def overall(self) -> xr.Dataset:
        """Attention and pairs averaged over layers and heads."""
        return xr.Dataset(
            {
                "attention": self.data["attention"].mean(("layer", "head")),
                "pairs": self.data["pairs"].mean("layer"),
            }
        )

    def attention(self, label: str, kind: str) -> Estimate:
        """Return mean attention of a kind of pair, over all layers and heads."""
        own = self.overall.sel(label=label, kind=kind)
        return self._estimate(pooled_mean, own["attention"], own["pairs"])

    def ratio(self, label: str) -> Estimate:
        """Return attention between words of one topic over that between words of two."""
        return self.attention(label, SAME) / self.attention(label, DIFFERENT)

    def head_ratio(self, label: str) -> Estimate:
        """Return the ratio of every layer and head that the model has."""
        layers, heads = self.shape
        own = self.data.sel(label=label).isel(layer=slice(layers), head=slice(heads))
        same, different = (
            self._estimate(pooled_mean, each["attention"], each["pairs"].expand_dims("head", -1))
            for each in (own.sel(kind=kind) for kind in (SAME, DIFFERENT))
        )
        return same / different

    def within(self, label: str) -> Estimate:
        """Return the ratio with every document as its own yardstick."""
        own = self.overall.sel(label=label)
        return self._estimate(within_documents, own["attention"], own["pairs"])

    def near(self, label: str) -> Estimate:
        """Return the ratio at equal distance."""
        own = self.data.sel(label=label)
        return self._estimate(at_equal_distance, own["by_distance"], own["distance_pairs"])

    def profile(self, label: str) -> xr.DataArray:
        """Return mean attention by distance, ``(topic_kind, bin)``; NaN without a pair."""
        own = self.data.sel(label=label).sum("document")
        return own["by_distance"] / own["distance_pairs"]

    def shuffled(self, label: str) -> xr.DataArray:
        """Return the ratio for every time that topics were shuffled among the words."""
        own = self.data.sel(label=label).sum("document")
        means = own["shuffled"] / own["shuffled_pairs"]
        return means.sel(topic_kind=SAME) / means.sel(topic_kind=DIFFERENT)

    def vectors(self, label: str, kind: str, measure: str = "cosine", depth: int = 0) -> Estimate:
        """Return the mean cosine or dot product of a kind of pair at a depth."""
        own = self.data.sel(label=label, kind=kind)
        sums = own["vectors"].sel(measure=measure).isel(depth=depth)
        return self._estimate(pooled_mean, sums, own["vector_pairs"])

    def vector_gap(self, label: str, over: str = DIFFERENT, depth: int = 0) -> Estimate:
        """Return how much larger the mean cosine is for one topic than for another kind of pair."""
        same, other = (self.vectors(label, kind, depth=depth) for kind in (SAME, over))
        return same - other

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

    def _estimate(
        self, statistic: Callable[..., np.ndarray], sums: xr.DataArray, counts: xr.DataArray
    ) -> Estimate:
        level = 1 - MISS / len(self.thresholds())
        return Estimate.of(statistic, sums.to_numpy(), counts.to_numpy(), self.weights, level)


def measured(run: Readings, *roles: str) -> list[Measured]:
    """Return what was read, in the order of the runs; runs that were not begun are left out.

    Args:
        run: the readings.
        roles: of the models; all of them unless given.
    """
    known = facts(run)
    found = []
    for case in (Case(**each) for each in known["cases"]):
        if roles and case.role not in roles:
            continue
        own, names = run.of(case.name), run["observables"].data_vars
        every = xr.Dataset({str(name): own.get(str(name)).astype(float) for name in names})
        every = every.assign_coords(label=[each["name"] for each in known["labels"]])
        for seed in every["seed"].to_numpy():
            data = every.sel(seed=seed).dropna("document", subset=["group"])
            if data.sizes["document"] > 1:
                found.append(Measured(case, int(seed), data, known["labels"]))
    return sorted(found, key=lambda one: one.seed)


def facts(run: Readings) -> dict[str, Any]:
    """Return what the study wrote down about models, corpus and topics."""
    known: dict[str, Any] = json.loads(run["data"].attrs["facts"])
    return known
