"""One run of a point in memory, and how runs are put together to a trajectory."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from attnscope.engines import Checkpoint, Memory, Record, Solution
from attnscope.experiment import Experiment
from attnscope.trajectory.arrays import clock_name
from attnscope.trajectory.tree import STATS, stats_of, with_runs


@dataclass(frozen=True)
class Piece:
    """What one run recorded.

    Args:
        arrays: readings by ``group/name``, the recorded dimension first; clocks too.
        about: dims, attributes and labels of each array, JSON values.
        state: how the run ended, JSON values.
    """

    arrays: Mapping[str, np.ndarray]
    about: Mapping[str, dict[str, Any]]
    state: Mapping[str, Any]


class PieceSink(Memory):
    """Keeps readings in memory, of a run that can be stopped and taken up again.

    Args:
        labels: of dimensions, as the study declares them.
        step: is told the time, and how to get a checkpoint; returns whether to go on.
        before: what was read before the run was stopped.
    """

    def __init__(
        self,
        labels: Mapping[str, Sequence[Any]],
        step: Callable[[float, Callable[[], Checkpoint]], bool],
        before: Piece | None = None,
    ) -> None:
        super().__init__()
        self.labels, self.tell, self.before = labels, step, before
        self.begun = clock.monotonic()

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        """Start empty, or with what is known."""
        super().open(model, records, times)
        if self.before is not None:
            for record, arrays in zip(records, self.arrays, strict=True):
                for observable in record.observables:
                    known = self.before.arrays.get(f"{record.group}/{observable.name}")
                    if known is not None:
                        arrays[observable.name] = known.copy()

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Tell the time; go on unless somebody wants to stop."""
        return self.tell(time, checkpoint)

    @property
    def seconds(self) -> float:
        """Seconds that the run took, all its parts together."""
        earlier = 0.0 if self.before is None else float(self.before.state.get("seconds", 0.0))
        return earlier + clock.monotonic() - self.begun

    def piece(self, **state: Any) -> Piece:
        """Return what has been read."""
        found: dict[str, np.ndarray] = {}
        about: dict[str, dict[str, Any]] = {}
        for record, times, arrays in zip(self.records, self.times, self.arrays, strict=True):
            name = clock_name(record.dim)
            found[f"{record.group}/{name}"] = times
            about[f"{record.group}/{name}"] = {
                "dims": [record.dim],
                "attrs": {"unit": "learning rate × steps", "meaning": "training time"},
            }
            for observable in record.observables:
                if observable.name not in arrays:
                    continue
                observable.check(arrays[observable.name].shape[1:])
                own = {dim: self.labels[dim] for dim in observable.dims if dim in self.labels}
                labels = {dim: list(each) for dim, each in {**own, **observable.coords}.items()}
                found[f"{record.group}/{observable.name}"] = arrays[observable.name]
                about[f"{record.group}/{observable.name}"] = {
                    "dims": [record.dim, *observable.dims],
                    "attrs": {
                        "unit": observable.unit,
                        "meaning": observable.meaning,
                        "labels": labels,
                    },
                }
        return Piece(found, about, {"seconds": round(self.seconds, 4), **state})

    def ended(self, solution: Solution) -> Piece:
        """Return what was read, and how the run ended."""
        own = {name: getattr(solution, name) for name in STATS if name != "seconds"}
        return self.piece(
            outcome=solution.outcome.value, status=solution.status, **own, **solution.details()
        )


def joined(study: Experiment, pieces: Mapping[int, Piece]) -> xr.DataTree:
    """Return the trajectory of a study's runs; those that are not there are NaN.

    The first run says what is recorded, as it does on disk.
    """
    runs = study.runs()
    first = pieces[min(pieces)]
    groups: dict[str, dict[str, xr.Variable]] = {"observables": {}, "params": {}}
    for name, like in first.arrays.items():
        group, variable = name.split("/", 1)
        about = first.about[name]
        attrs = {key: value for key, value in about["attrs"].items() if value != {}}
        dims = tuple(about["dims"])
        if variable == clock_name(dims[0]):
            groups.setdefault(group, {})[variable] = xr.Variable(dims, like, attrs)
            continue
        stacked = np.full((len(runs), *like.shape), np.nan, like.dtype)
        for number, piece in pieces.items():
            if name in piece.arrays:
                stacked[number] = piece.arrays[name]
        groups.setdefault(group, {})[variable] = xr.Variable(("run", *dims), stacked, attrs)
    cases, seeds = map(list, zip(*runs, strict=True))
    made = {
        name: with_runs(xr.Dataset(variables), cases, seeds, study.unit)
        for name, variables in groups.items()
    }
    states = [dict(pieces[n].state) if n in pieces else {} for n in range(len(runs))]
    made["stats"] = stats_of(states, cases, seeds)
    return xr.DataTree.from_dict(made)


def pieces_of(tree: xr.DataTree, runs: Sequence[tuple[str, int]]) -> dict[int, Piece]:
    """Take a trajectory apart again, by the places that its runs have among others.

    Args:
        tree: of the same study with fewer seeds.
        runs: case and seed of every run that is wanted.
    """
    stats = tree["stats"].to_dataset()
    known = list(zip(stats["case"].values.tolist(), stats["seed"].values.tolist(), strict=True))
    states = {int(state["run"]): state for state in tree.attrs["states"]}
    found: dict[int, Piece] = {}
    for place, run in enumerate(known):
        if run not in runs or place not in states:
            continue
        arrays: dict[str, np.ndarray] = {}
        about: dict[str, dict[str, Any]] = {}
        for group in ("observables", "params"):
            data = tree[group].to_dataset()
            for key, variable in data.variables.items():
                name, dims = f"{group}/{key}", tuple(map(str, variable.dims))
                clock = len(dims) == 1 and key == clock_name(dims[0])
                if "run" in dims and key not in ("case", "seed"):
                    arrays[name] = np.asarray(variable.values[place])
                elif clock:
                    arrays[name] = np.asarray(variable.values)
                else:
                    continue
                labels = {
                    dim: data[dim].values.tolist()
                    for dim in dims[2:]
                    if dim in data.coords and not clock
                }
                own = {k: v for k, v in variable.attrs.items() if k != "labels"}
                about[name] = {
                    "dims": [dim for dim in dims if dim != "run"],
                    "attrs": {**own, **({"labels": labels} if labels else {})},
                }
        state = {key: value for key, value in states[place].items() if key != "run"}
        found[list(runs).index(run)] = Piece(arrays, about, state)
    return found
