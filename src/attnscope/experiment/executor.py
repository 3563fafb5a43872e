"""One run of an experiment: on disk, where it can be resumed, or in memory."""

from __future__ import annotations

import contextlib
import time as clock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr

from attnscope.engines import Checkpoint, Memory, Outcome
from attnscope.engines.solution import Solution
from attnscope.errors import AttnscopeError
from attnscope.experiment.base import Experiment
from attnscope.trajectory import (
    RunFolder,
    ZarrSink,
    by_run,
    load_checkpoint,
    memory_tree,
    open_run,
)
from attnscope.trajectory.tree import state_in_memory, stats_of, with_runs


class Stopped(AttnscopeError):
    """Somebody did not want the run any more."""


def execute(
    folder: RunFolder,
    experiment: Experiment,
    run: int,
    *,
    progress: Callable[[float], None] | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Do one run, or go on with it from its checkpoint; return how it ended.

    A run that is complete already is left alone.
    """
    state = folder.state(run)
    if state.get("outcome") in ("finished", "stopped"):
        return state
    case, seed = experiment.runs()[run]
    first = run in experiment.rounds()[0]
    job = experiment.job(case, seed, None if first else experiment.read(open_run(folder.path)))

    def tell(time: float) -> None:
        if progress is not None:
            progress(time / job.end)

    sink = ZarrSink(folder, run, progress=tell, interrupted=interrupted)
    return sink.finish(job.execute(sink, load_checkpoint(folder.checkpoint_path(run))))


def theory_of(experiment: Experiment, tree: xr.DataTree) -> xr.Dataset:
    """Return what an experiment predicts, along ``run`` and with the clocks of the readings."""
    with one_thread():
        predicted = _dataset(experiment.theory(experiment.read(tree)), experiment)
    read = tree["observables"].to_dataset().coords
    clocks = {str(name): read[name] for name in read if str(name).split("_")[0] == "time"}
    steps = [str(each.dims[0]) for each in clocks.values()]
    known = {n: each.variable for n, each in clocks.items() if each.dims[0] in predicted.dims}
    return predicted.drop_vars(steps, errors="ignore").assign_coords(known)


def truth_of(experiment: Experiment) -> xr.Dataset:
    """Return the ground truth of an experiment."""
    return _dataset(experiment.truth(), experiment)


def _dataset(found: xr.Dataset | Mapping[str, Any], experiment: Experiment) -> xr.Dataset:
    """Return arrays by name as a group of the trajectory; runs know their cases and seeds."""
    data = found if isinstance(found, xr.Dataset) else xr.Dataset(found)
    data = by_run(data, experiment.runs())
    # Epochs are made of the clocks, labels are the experiment's: both come back when it is read.
    again = {name for name in data.coords if str(name).startswith("epoch")}
    return data.drop_vars(again | (set(experiment.labels) & set(data.coords)))


@dataclass(frozen=True)
class Solved:
    """A tree in memory, and how long its runs took, by the clock and of the processor."""

    tree: xr.DataTree
    seconds: float
    processor_seconds: float
    begun: float = field(repr=False)

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return clock.perf_counter() - self.begun


def solve(experiment: Experiment, stopped: Callable[[], bool] = lambda: False) -> Solved:
    """Do all runs of an experiment one after the other, in memory, with truth and theory.

    Raises:
        Stopped: ``stopped`` said so.
        AttnscopeError: a run diverged.
    """
    begun, busy = clock.perf_counter(), clock.process_time()
    with one_thread():
        runs = [_one(experiment, case, seed, stopped) for case, seed in experiment.runs()]
        seconds, busy = clock.perf_counter() - begun, clock.process_time() - busy
        tree = _joined(experiment, runs)
        tree["data"] = xr.DataTree(truth_of(experiment))
        tree["theory"] = xr.DataTree(theory_of(experiment, tree))
        tree = name_runs(experiment, tree)
    if stopped():
        raise Stopped("stopped.")
    return Solved(tree, seconds, busy, begun)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread: two on a model this small are an order of magnitude slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _StoppableMemory(Memory):
    """Readings in memory, of a run that can be stopped between two steps."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        super().__init__()
        self.stopped = stopped

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Go on unless stopped."""
        return not self.stopped()


def _one(
    experiment: Experiment, case: str, seed: int, stopped: Callable[[], bool]
) -> tuple[xr.DataTree, Solution]:
    job, memory = experiment.job(case, seed), _StoppableMemory(stopped)
    solution = job.execute(memory, None)
    if solution.outcome is Outcome.INTERRUPTED:
        raise Stopped(f"stopped at time {solution.time:g} of {job.end:g}.")
    if solution.failed:
        raise AttnscopeError(
            f"the run broke down ({solution.status}): expected a milder setting, such as a smaller "
            "initialisation."
        )
    return memory_tree(memory, solution, experiment.unit), solution


def _joined(experiment: Experiment, runs: list[tuple[xr.DataTree, Solution]]) -> xr.DataTree:
    # Runs differ in the methods that they took and in how often they looked at the sharpness.
    cases, seeds = zip(*experiment.runs(), strict=True)
    states = [state_in_memory(solution) for _, solution in runs]
    groups = {"stats": stats_of(states, list(cases), list(seeds))}
    trees = [tree for tree, _ in runs]
    for name in trees[0].children:
        if name == "stats":
            continue
        parts = [tree[name].to_dataset().drop_vars(["case", "seed"]) for tree in trees]
        # One axis of time for all, though clocks of descent and of flow differ in their last digit.
        shared = parts[0].coords
        parts = [each.assign_coords({n: shared[n] for n in each.coords}) for each in parts]
        for part in parts[1:]:
            # The first case lays the store out; what another one does not record is not a number.
            for missing in parts[0].data_vars.keys() - part.data_vars.keys():
                part[missing] = xr.full_like(parts[0][missing], np.nan)
        groups[name] = xr.concat(parts, "run", join="exact", data_vars="all", coords="minimal")
    return name_runs(experiment, xr.DataTree.from_dict(groups))


def name_runs(experiment: Experiment, tree: xr.DataTree) -> xr.DataTree:
    """Give every group with runs their cases and seeds, and its clocks their steps."""
    cases, seeds = zip(*experiment.runs(), strict=True)
    groups = {
        name: with_runs(node.to_dataset(), list(cases), list(seeds), experiment.unit)
        for name, node in tree.children.items()
    }
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=tree.attrs), **groups})
