"""A trajectory as its study sees it: readings by case and seed, and what is asked of curves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from attnscope.errors import AttnscopeError, nearest


class Readings:
    """Readings by name: ``run.score`` has the dimensions ``case, seed, step, ...``.

    ``run.of("FC").score`` is one case, with the dimensions ``seed, step, ...``;
    ``run.theory.norm`` and ``run.stats.seconds`` are other groups. What does not depend on the run,
    such as ground truth, is as it was written. ``run.tree`` is the trajectory itself, and
    ``run["observables/score"]`` what it holds under that path.

    Args:
        tree: the trajectory.
        labels: of dimensions that the trajectory itself does not label, as older ones do not.
        case: the one that is read; all of them unless given.
        group: where names are looked up.
    """

    def __init__(
        self,
        tree: xr.DataTree,
        labels: Mapping[str, Sequence[Any]] | None = None,
        case: str | None = None,
        group: str = "observables",
    ) -> None:
        self.tree, self._labels, self._case, self._group = tree, labels or {}, case, group

    def _but(self, case: str | None = None, group: str | None = None) -> Readings:
        return Readings(self.tree, self._labels, case or self._case, group or self._group)

    def __getitem__(self, path: str) -> Any:
        return self.tree[path]

    def __getattr__(self, name: str) -> xr.DataArray:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.get(name)

    @property
    def children(self) -> Mapping[str, Any]:
        """The groups."""
        return self.tree.children

    @property
    def attrs(self) -> dict[Hashable, Any]:
        """What the trajectory says of itself."""
        return self.tree.attrs

    @cached_property
    def cases(self) -> tuple[str, ...]:
        """The cases, in the order of the runs."""
        found = self.tree["stats"].coords["case"].to_numpy()
        return tuple(str(case) for case in dict.fromkeys(found))

    def of(self, case: str) -> Readings:
        """Return the readings of one case.

        Raises:
            AttnscopeError: there is no such case.
        """
        if case not in self.cases:
            raise AttnscopeError(
                f"there is no case '{case}' in this run.{nearest(case, self.cases)} Expected one "
                f"of: {', '.join(self.cases)}."
            )
        return self._but(case)

    @property
    def theory(self) -> Readings:
        """What should have been read."""
        return self._but(group="theory")

    @property
    def data(self) -> Readings:
        """The ground truth."""
        return self._but(group="data")

    @property
    def stats(self) -> Readings:
        """What the engine says of itself."""
        return self._but(group="stats")

    @property
    def params(self) -> Readings:
        """Snapshots of parameters."""
        return self._but(group="params")

    def __contains__(self, name: str) -> bool:
        return self._group in self.tree.children and name in self.tree[self._group].data_vars

    def get(self, name: str) -> xr.DataArray:
        """Return a reading by its name.

        Raises:
            AttnscopeError: nothing of that name was recorded.
        """
        node = self.tree.children.get(self._group)
        if node is None or name not in node.variables:
            known = [] if node is None else [str(each) for each in node.data_vars]
            raise AttnscopeError(
                f"'{name}' is not in the group '{self._group}' of this run.{nearest(name, known)} "
                f"Expected one of: {', '.join(known)}."
            )
        data: xr.DataArray = node.dataset[name]
        if name in data.dims and data.ndim > 1:
            # What is called like one of its own axes is taken for that axis' labels.
            data = data.drop_vars(name)
        for dim, labels in self._labels.items():
            if data.sizes.get(dim) == len(labels) and dim not in data.coords:
                data = data.assign_coords({dim: list(labels)})
        if "run" not in data.dims:
            return data
        if self._case is not None:
            return _by_seed(data, self._case)
        cases = [str(case) for case in dict.fromkeys(data["case"].to_numpy())]
        parts = [_by_seed(data, case) for case in cases]
        if any(not np.array_equal(part["seed"], parts[0]["seed"]) for part in parts):
            raise AttnscopeError(
                f"the cases of this run have different seeds, so '{name}' is no table of both: "
                "expected the case to be named, as in run.of(case)."
            )
        return xr.concat(parts, xr.DataArray(cases, dims="case", name="case"), join="exact")


def _by_seed(data: xr.DataArray, case: str) -> xr.DataArray:
    own = data.isel(run=np.flatnonzero(data["case"].to_numpy() == case))
    own = own.drop_vars("case").swap_dims(run="seed")
    return own.drop_vars("run", errors="ignore")


def by_run(data: xr.Dataset, runs: Sequence[tuple[str, int]]) -> xr.Dataset:
    """Turn dimensions ``case, seed`` into ``run``, in the order that runs are kept in."""
    for at, dim in enumerate(("case", "seed")):
        labels = [run[at] for run in runs]
        if dim in data.dims:
            if dim not in data.coords:
                data = data.assign_coords({dim: list(dict.fromkeys(labels))})
            data = data.sel({dim: xr.DataArray(labels, dims="run")})
    return data.drop_vars(["case", "seed"], errors="ignore")


def final(reading: xr.DataArray) -> xr.DataArray:
    """Return the last reading of every run, along whichever dimension it was recorded."""
    return reading.isel({record_dim(reading): -1}, drop=True)


def initial(reading: xr.DataArray) -> xr.DataArray:
    """Return the reading at time 0."""
    return reading.isel({record_dim(reading): 0}, drop=True)


def carried(reading: xr.DataArray) -> xr.DataArray:
    """Return a reading in which a run that ended early keeps its last values."""
    axis = reading.get_axis_num(record_dim(reading))
    values = reading.to_numpy()
    at = np.expand_dims(np.arange(values.shape[axis]), [i for i in range(values.ndim) if i != axis])
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, at), axis=axis)
    return reading.copy(data=np.take_along_axis(values, last, axis=axis))


def crossing(reading: xr.DataArray, level: float | xr.DataArray) -> xr.DataArray:
    """Return the step at which a curve first rises above a level; NaN if it does not.

    Between two record points the curve is taken as straight. A curve that begins above the level
    crosses it at its first step.

    Args:
        reading: with a recorded dimension, such as ``step``.
        level: a number, or one for each curve.

    Example:
        >>> curve = xr.DataArray([0.0, 0.2, 0.6], coords={"step": [0, 10, 20]}, dims="step")
        >>> float(crossing(curve, 0.4))
        15.0
        >>> float(crossing(curve, 2.0))
        nan
    """
    dim = record_dim(reading)

    def first(curve: np.ndarray, steps: np.ndarray, at: float) -> float:
        above = np.flatnonzero(curve > at)
        if not above.size:
            return np.nan
        i = int(above[0])
        if i == 0:
            return float(steps[0])
        part = (at - curve[i - 1]) / (curve[i] - curve[i - 1])
        return float(steps[i - 1] + part * (steps[i] - steps[i - 1]))

    found: xr.DataArray = xr.apply_ufunc(
        first,
        reading,
        reading[dim],
        level,
        input_core_dims=[[dim], [dim], []],
        vectorize=True,
        output_dtypes=[float],
    )
    return found


def record_dim(reading: xr.DataArray) -> str:
    """Return the dimension along which a reading was recorded: the one that carries a clock."""
    for name, coordinate in reading.coords.items():
        if str(name).startswith("time") and coordinate.ndim == 1:
            return str(coordinate.dims[0])
    if "step" in reading.dims:
        return "step"
    raise AttnscopeError(
        f"'{reading.name}' has the dimensions {reading.dims} and no clock: expected a reading that "
        "was recorded over training."
    )
