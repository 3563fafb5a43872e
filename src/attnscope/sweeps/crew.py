"""Who does the points of a sweep: this process, processes beside it, or a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from attnscope.errors import AttnscopeError
from attnscope.experiment.signals import Stop
from attnscope.sweeps.point import do_point
from attnscope.trajectory.lock import Lock
from attnscope.workers import Here, Pool
from attnscope.workers.cluster import LOCAL, WAYS, Needs, joined
from attnscope.workers.ray_pool import RayPool

Hear = Callable[[int, str, Any], None]
Args = Callable[[int, tuple[Any, ...]], tuple[Any, ...]]


class Jobs(Protocol):
    """What does jobs: a pool of processes, of a cluster, or this process."""

    def add(self, *args: Any) -> int:
        """Give another job."""

    def listen(self, hear: Hear) -> None:
        """Pass on what jobs say until all are done."""

    def rest(self, hear: Hear) -> None:
        """Pass on what was said while stopping."""

    def stop(self) -> None:
        """Ask jobs to stop, and wait until they have."""


@contextmanager
def crew_for(
    count: int,
    args_now: Args,
    title: Callable[[int], str],
    lock: Lock,
    stop: Stop,
    *,
    on: str,
    workers: int | None,
    needs: Needs,
    most: int,
) -> Iterator[Jobs]:
    """Find who does the points, and let them go at the end.

    Args:
        count: how many points there are to begin with.
        args_now: returns what a point needs at the moment it is handed out.
        title: what a point is called.
        lock: of the sweep's folder.
        stop: whether somebody asked to end.
        on: where, see :func:`attnscope.run`.
        workers: how many points side by side.
        needs: what a point takes of a node of a cluster.
        most: points that there may ever be side by side.

    Raises:
        AttnscopeError: there is no such place.
    """
    jobs: list[tuple[Any, ...]] = [()] * count
    if on != LOCAL:
        with joined(on, workers, needs) as cluster:
            yield RayPool(
                do_point,
                jobs,
                workers,
                cluster=cluster,
                needs=needs,
                args_now=args_now,
                title=title,
                stopped=stop.is_set,
            )
        return
    if needs != Needs():
        raise AttnscopeError(
            f"a point that takes {needs} without a cluster: expected on = {WAYS[9:]} beside "
            "cpus, gpus or memory."
        )
    side_by_side = min(workers or os.cpu_count() or 1, most)
    if side_by_side == 1:
        yield Here(do_point, jobs, stop.is_set, args_now=args_now)
    else:
        yield Pool(do_point, jobs, side_by_side, [lock.descriptor], args_now=args_now)
