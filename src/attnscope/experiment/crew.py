"""Who does the runs of an experiment: this process, processes beside it, or a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import xarray as xr

from attnscope.engines import Checkpoint
from attnscope.errors import AttnscopeError
from attnscope.experiment.base import Experiment
from attnscope.experiment.executor import execute, one_thread
from attnscope.experiment.signals import Stop
from attnscope.trajectory import Lock, RunFolder, load_checkpoint, open_run
from attnscope.trajectory.travel import Receiver, Sender
from attnscope.workers import Pool
from attnscope.workers.cluster import LOCAL, ONE, WAYS, Cluster, Needs, joined
from attnscope.workers.ray_pool import RayPool


class Listener(Protocol):
    """Hears how far the runs are."""

    def __call__(self, run: int, fraction: float) -> None:
        """Learn that ``run`` has done ``fraction`` of its time."""


class Crew(Protocol):
    """Does runs, and keeps what they record in the folder."""

    def __call__(
        self,
        folder: RunFolder,
        experiment: Experiment,
        todo: list[int],
        listener: Listener | None,
        lock: Lock,
        stop: Stop,
    ) -> None:
        """Do the runs of these numbers, or go on with them.

        Raises:
            KeyboardInterrupt: somebody asked to end; checkpoints are kept.
            AttnscopeError: a run cannot be done.
        """


@contextmanager
def crew_for(on: str, workers: int | None, needs: Needs) -> Iterator[Crew]:
    """Find who does the runs, and let them go at the end.

    Args:
        on: where, see :func:`attnscope.run`.
        workers: how many runs side by side.
        needs: what a run takes of a node of a cluster.

    Raises:
        AttnscopeError: there is no such place.
    """
    if on == LOCAL:
        if needs != ONE:
            raise AttnscopeError(
                f"a run that takes {needs} without a cluster: expected on = {WAYS[9:]} beside "
                "cpus, gpus or memory."
            )
        yield partial(_nearby, workers)
        return
    with joined(on, workers, needs) as cluster:
        yield partial(_afar, cluster, workers, needs)


def _nearby(
    workers: int | None,
    folder: RunFolder,
    experiment: Experiment,
    todo: list[int],
    listener: Listener | None,
    lock: Lock,
    stop: Stop,
) -> None:
    """Do the runs in processes side by side, or in this one if one is enough."""
    count = min(len(todo), workers if workers is not None else (os.cpu_count() or 1))
    if count == 1:
        _here(folder, experiment, todo, listener, stop)
        return
    failed: list[str] = []

    def hear(number: int, kind: str, value: Any) -> None:
        if kind == "sorry":
            failed.append(value)
        elif listener is not None and kind in ("part", "done"):
            listener(todo[number], 1.0 if kind == "done" else value)

    jobs = [(folder.path, experiment, index) for index in todo]
    pool = Pool(_work, jobs, count, [lock.descriptor])
    try:
        with stop.at_once():
            pool.listen(hear)
    finally:
        pool.stop()
    if failed:
        raise AttnscopeError(failed[0])


def _work(path: Path, experiment: Experiment, index: int, job: Any) -> None:
    """Do one run in a worker process."""
    execute(RunFolder(path), experiment, index, progress=job.say, interrupted=job.stopped)


def _here(
    folder: RunFolder,
    experiment: Experiment,
    todo: list[int],
    listener: Listener | None,
    stop: Stop,
) -> None:
    with one_thread():
        for index in todo:
            tell = None
            if listener is not None:
                listener(index, 0.0)

                def tell(fraction: float, index: int = index) -> None:
                    listener(index, fraction)

            execute(folder, experiment, index, progress=tell, interrupted=stop.is_set)
            if stop.is_set():
                raise KeyboardInterrupt
            if listener is not None:
                listener(index, 1.0)


def _afar(
    cluster: Cluster,
    workers: int | None,
    needs: Needs,
    folder: RunFolder,
    experiment: Experiment,
    todo: list[int],
    listener: Listener | None,
    lock: Lock,
    stop: Stop,
) -> None:
    """Do the runs on a cluster; what they record comes here, and only this process writes."""
    failed: list[str] = []
    receivers = {number: Receiver(folder, index) for number, index in enumerate(todo)}
    earlier = None
    if todo[0] not in experiment.rounds()[0]:
        earlier = open_run(folder.path).load()

    def hear(number: int, kind: str, value: Any) -> None:
        if kind == "sorry":
            failed.append(value)
        elif kind == "part" and not isinstance(value, float):
            receivers[number].hear(value)
        elif listener is not None and kind in ("part", "done"):
            listener(todo[number], 1.0 if kind == "done" else value)

    def now(number: int, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what a run needs, with the last checkpoint that has come back from it."""
        return (*args, load_checkpoint(folder.checkpoint_path(todo[number])), earlier)

    def title(number: int) -> str:
        case, seed = experiment.runs()[todo[number]]
        return f"the run of {case}, seed {seed},"

    pool = RayPool(
        _work_afar,
        [(experiment, index) for index in todo],
        workers,
        cluster=cluster,
        needs=needs,
        args_now=now,
        title=title,
        stopped=stop.is_set,
    )
    try:
        pool.listen(hear)
    finally:
        pool.stop()
    pool.rest(hear)
    if stop.is_set():
        raise KeyboardInterrupt
    if failed:
        raise AttnscopeError(failed[0])


def _work_afar(
    experiment: Experiment,
    index: int,
    resume: Checkpoint | None,
    earlier: xr.DataTree | None,
    job: Any,
) -> None:
    """Do one run on a node, which has no disk in common with whoever asked for it."""
    case, seed = experiment.runs()[index]
    run = experiment.job(case, seed, None if earlier is None else experiment.read(earlier))
    sink = Sender(job.say, progress=lambda time: job.say(time / run.end), interrupted=job.stopped)
    sink.finish(run.execute(sink, resume))
