"""Who does the runs: a few warm processes, and for everyone at most one run that is wanted.

Every seat at the page wants one setting at a time. A newer wish replaces the one that waits, so
that however fast a slider moves, no queue builds up; a run that has gone on for a while is given up
for it. Processes are started before they are needed, with one thread each, a limit on memory, and a
limit on time after which they are replaced.
"""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from attnscope.lab.work import serve_jobs

PATIENCE = 0.6
"""Seconds that a run may go on although something newer is wanted: it is nearly there."""
GRACE = 2.0
"""Seconds that a process gets to obey, before it is ended."""

Hear = Callable[[dict[str, Any]], None]


@dataclass
class Wish:
    """A run that somebody waits for."""

    job: dict[str, Any]
    hear: Hear


@dataclass(eq=False)
class Seat:
    """One side of one session: what it wants, and what is being done for it."""

    waiting: Wish | None = None
    running: Worker | None = None


@dataclass(eq=False)
class Worker:
    """A process, and what it is doing."""

    process: Any
    pipe: Any
    cancelled: Any
    ready: bool = False
    seat: Seat | None = None
    wish: Wish | None = None
    number: int = 0
    begun: float = 0.0
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class Player:
    """A pool of processes that do runs.

    Args:
        workers: how many.
        seconds: longest run.
        memory: bytes that a run may need.
    """

    def __init__(self, workers: int = 2, seconds: float = 20.0, memory: int = 1 << 30) -> None:
        self.count, self.seconds, self.memory = workers, seconds, memory
        self.workers: list[Worker] = []
        self.seats: list[Seat] = []
        self.jobs = 0

    def start(self) -> None:
        """Start the processes, from within a running event loop, and return at once."""
        self.loop = asyncio.get_running_loop()
        for _ in range(self.count):
            self._hire()

    def stop(self) -> None:
        """End all processes."""
        for worker in list(self.workers):
            self._dismiss(worker)

    def seat(self) -> Seat:
        """Return a place that can want one run at a time."""
        seat = Seat()
        self.seats.append(seat)
        return seat

    def leave(self, seat: Seat) -> None:
        """Give a seat up, and what is done for it."""
        self.forget(seat)
        if seat in self.seats:
            self.seats.remove(seat)

    def want(self, seat: Seat, job: dict[str, Any], hear: Hear) -> None:
        """Ask for a run; ``hear`` gets the answer unless something newer is asked for first.

        Args:
            seat: who asks.
            job: ``world``, ``setting``, and ``have``, the figures that need numbers only.
            hear: is called once in the event loop.
        """
        seat.waiting = Wish(job, hear)
        running = seat.running
        if running is not None and clock.monotonic() - running.begun > PATIENCE:
            self._cancel(running)
        self._assign()

    def forget(self, seat: Seat) -> None:
        """Stop what a seat waits for."""
        seat.waiting = None
        if seat.running is not None:
            self._cancel(seat.running)

    def _assign(self) -> None:
        if not self.workers:
            self._give_up()
        for seat in list(self.seats):
            if seat.waiting is None or seat.running is not None:
                continue
            free = next((w for w in self.workers if w.ready and w.seat is None), None)
            if free is None:
                return
            self._begin(free, seat)
            # Whoever was served goes to the end of the row.
            self.seats.remove(seat)
            self.seats.append(seat)

    def _give_up(self) -> None:
        for seat in self.seats:
            wish, seat.waiting = seat.waiting, None
            if wish is not None:
                wish.hear(
                    {
                        "kind": "sorry",
                        "sentence": "No process could be started to do this run (the terminal says "
                        "why): expected the lab to be started again.",
                    }
                )

    def _begin(self, worker: Worker, seat: Seat) -> None:
        assert seat.waiting is not None
        self.jobs += 1
        worker.number, worker.begun = self.jobs, clock.monotonic()
        worker.seat, worker.wish = seat, seat.waiting
        seat.running, seat.waiting = worker, None
        worker.timer = self.loop.call_later(self.seconds, self._too_long, worker, worker.number)
        try:
            worker.pipe.send((worker.number, worker.wish.job))
        except OSError:
            self._lost(worker)

    def _too_long(self, worker: Worker, number: int) -> None:
        if worker.number == number and worker.wish is not None:
            wish = worker.wish
            self._cancel(worker)
            wish.hear(
                {
                    "kind": "sorry",
                    "sentence": f"This setting takes longer than {self.seconds:g} seconds and was "
                    "stopped: expected a smaller one.",
                }
            )

    def _cancel(self, worker: Worker) -> None:
        """Ask a process to give its run up, and end it if it does not."""
        if worker.wish is None:
            return
        worker.wish = None
        worker.cancelled.value = worker.number
        if worker.timer is not None:
            worker.timer.cancel()
        worker.timer = self.loop.call_later(GRACE, self._replace, worker, worker.number)

    def _replace(self, worker: Worker, number: int) -> None:
        if worker.number == number and worker.seat is not None:
            self._dismiss(worker)
            self._hire()
            self._assign()

    def _hire(self) -> None:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        cancelled = context.Value("q", -1, lock=False)
        process = context.Process(
            target=serve_jobs, args=(theirs, cancelled, self.memory), daemon=True
        )
        process.start()
        theirs.close()
        worker = Worker(process, ours, cancelled)
        self.workers.append(worker)
        self.loop.add_reader(ours.fileno(), self._hear, worker)

    def _dismiss(self, worker: Worker) -> None:
        self.loop.remove_reader(worker.pipe.fileno())
        self._free(worker)
        self.workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join(5)

    def _free(self, worker: Worker) -> Wish | None:
        if worker.timer is not None:
            worker.timer.cancel()
        if worker.seat is not None:
            worker.seat.running = None
        wish, worker.seat, worker.wish, worker.timer = worker.wish, None, None, None
        return wish

    def _hear(self, worker: Worker) -> None:
        try:
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            self._lost(worker)
            return
        worker.ready = True
        wish = self._free(worker)
        if wish is not None and answer.get("kind") != "ready":
            wish.hear(answer)
        self._assign()

    def _lost(self, worker: Worker) -> None:
        """Go on after a process has died, as it does when the machine is short of memory."""
        wish, died_early = worker.wish, not worker.ready
        self._dismiss(worker)
        if wish is not None:
            wish.hear(
                {
                    "kind": "sorry",
                    "sentence": "The process that did this run ended, perhaps for want of memory: "
                    "expected a smaller setting. Another one has taken its place.",
                }
            )
        if not died_early:
            self._hire()
        self._assign()
