"""A study run in memory, to the same tree that a run on disk is read into."""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
import xarray as xr

from attnscope.engines.sink import Checkpoint, Memory
from attnscope.engines.solution import Outcome
from attnscope.errors import AttnscopeError
from attnscope.studies.old import Study
from attnscope.trajectory import memory_tree


class Stopped(AttnscopeError):
    """Somebody did not want the run any more."""


class StoppableMemory(Memory):
    """Readings in memory, of a run that can be stopped between two steps."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        super().__init__()
        self.stopped = stopped

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Go on unless stopped."""
        return not self.stopped()


@dataclass(frozen=True)
class Solved:
    """A tree, and how long its runs took, by the clock and of the processor."""

    tree: xr.DataTree
    seconds: float
    processor_seconds: float
    begun: float = field(repr=False)

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return clock.perf_counter() - self.begun


def solve(study: Study, stopped: Callable[[], bool] = lambda: False) -> Solved:
    """Run all runs of a study one after the other, and its theory.

    Raises:
        Stopped: ``stopped`` said so.
        AttnscopeError: a run diverged.
    """
    begun, busy = clock.perf_counter(), clock.process_time()
    trees = []
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for case, seed in study.runs():
            trees.append(_one(study, case, seed, stopped))
        seconds, busy = clock.perf_counter() - begun, clock.process_time() - busy
        tree = _joined(study, trees)
        tree["data"] = xr.DataTree(study.truth())
        tree["theory"] = xr.DataTree(study.theory(tree))
        _name_runs(study, tree, "theory")
    finally:
        torch.set_num_threads(before)
    if stopped():
        raise Stopped("stopped.")
    return Solved(tree, seconds, busy, begun)


def _one(study: Study, case: str, seed: int, stopped: Callable[[], bool]) -> xr.DataTree:
    problem, memory = study.build(case, seed), StoppableMemory(stopped)
    solution = study.make_engine(case, seed).run(
        problem.model,
        problem.loss,
        time=study.time,
        record=problem.records,
        stop=problem.stop,
        sink=memory,
    )
    if solution.outcome is Outcome.INTERRUPTED:
        raise Stopped(f"stopped at time {solution.time:g} of {study.time:g}.")
    if solution.outcome in (Outcome.DIVERGED, Outcome.EXHAUSTED):
        raise AttnscopeError(
            f"the run broke down ({solution.status}): expected a milder setting, such as a smaller "
            "initialisation."
        )
    return memory_tree(memory, solution, study.lr)


def _joined(study: Study, trees: list[xr.DataTree]) -> xr.DataTree:
    groups = {}
    for name in trees[0].children:
        parts = [tree[name].to_dataset().drop_vars(["case", "seed"]) for tree in trees]
        for part in parts[1:]:
            # The first case lays the store out; what another one does not record is not a number.
            for missing in parts[0].data_vars.keys() - part.data_vars.keys():
                part[missing] = xr.full_like(parts[0][missing], np.nan)
        groups[name] = xr.concat(parts, "run", join="exact", data_vars="all", coords="minimal")
    tree = xr.DataTree.from_dict(groups)
    for name in groups:
        _name_runs(study, tree, name)
    return tree


def _name_runs(study: Study, tree: xr.DataTree, group: str) -> None:
    data = tree[group].to_dataset()
    if "run" in data.dims:
        cases = np.array([case for case, _ in study.runs()])
        seeds = np.array([seed for _, seed in study.runs()])
        tree[group] = xr.DataTree(data.assign_coords(case=("run", cases), seed=("run", seeds)))
