"""Jobs side by side: workers that take them from a common queue."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Any

from attnscope.workers.process import BY_SYSTEM, KILLED, LOST, JobFailed, Worker, WorkerDied

PATIENCE = 20.0
"""Seconds that a job may take to stop when it is asked to."""


class Pool:
    """Worker processes that take jobs from a common queue.

    Args:
        function: is called as ``function(*args, job)``.
        jobs: the arguments of each.
        workers: how many processes.
        holding: files that stay open over there, such as the lock of the folder they write to.
        args_now: returns the arguments of a job at the moment it is handed out, given its number
            and those it had; so that large ones are not in memory all at once.
    """

    def __init__(
        self,
        function: Callable[..., object],
        jobs: Iterable[tuple[Any, ...]],
        workers: int,
        holding: Sequence[int] = (),
        *,
        args_now: Callable[[int, tuple[Any, ...]], tuple[Any, ...]] = lambda _, args: args,
    ) -> None:
        self._function, self._args_now = function, args_now
        self._pending: SimpleQueue[tuple[int, tuple[Any, ...]] | None] = SimpleQueue()
        self._given = self._left = 0
        for each in jobs:
            self.add(*each)
        self._messages: SimpleQueue[tuple[int, str, Any] | None] = SimpleQueue()
        self._failures: list[Exception] = []
        self._stopping = False
        self._holding = holding
        self._workers = [Worker(holding=holding) for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._serve, args=(place,), daemon=True)
            for place in range(workers)
        ]
        if not self._left:
            self._let_go()
        for thread in self._threads:
            thread.start()

    def add(self, *args: Any) -> int:
        """Give another job, before the last one has been heard of; return its place in the row.

        Whoever listens may do so, as when what comes next depends on what came out.
        """
        self._pending.put((self._given, args))
        self._given, self._left = self._given + 1, self._left + 1
        return self._given - 1

    def _let_go(self) -> None:
        """Tell the workers that no more jobs come."""
        for _ in self._workers:
            self._pending.put(None)

    def _serve(self, place: int) -> None:
        """Hand out jobs to one worker, and to another if it dies, and pass on what they say."""
        try:
            while self._serve_with(self._workers[place]):
                self._workers[place] = Worker(holding=self._holding)
                if self._stopping:  # Whoever stopped the others did not know of this one.
                    self._workers[place].process.terminate()
        except WorkerDied as death:
            if not self._stopping:
                self._failures.append(_failure(death.reason, death.printed))
        except Exception as error:  # It is raised where somebody listens.
            self._failures.append(error)
        self._messages.put(None)

    def _serve_with(self, worker: Worker) -> bool:
        """Hand out jobs to a worker; return whether one of them took it along.

        Raises:
            WorkerDied: it died before it had a job, and so would any other.
        """
        with closing(worker):
            worker.receive()
            while (each := self._pending.get()) is not None and not self._stopping:
                if not self._do(worker, *each):
                    return not self._stopping
        return False

    def _do(self, worker: Worker, number: int, args: tuple[Any, ...]) -> bool:
        """Have a job done; return whether the worker is still there."""
        kind = "part"
        value: Any = None
        try:
            worker.send(self._function, *self._args_now(number, args))
            while kind == "part":
                kind, value = worker.receive()
                self._messages.put((number, kind, value))
        except WorkerDied as death:
            reason = death.reason + BY_SYSTEM * (death.reason == KILLED)
            if not self._stopping:
                self._failures.append(_failure(reason, death.printed))
            self._messages.put((number, LOST, reason))
            return False
        except BaseException:
            self._messages.put((number, LOST, None))
            raise
        if kind == "bug":
            self._failures.append(_failure(value.splitlines()[-1], value))
        return True

    def rest(self, hear: Callable[[int, str, Any], None]) -> None:
        """Pass on what was said while the workers were being stopped, such as a checkpoint."""
        with contextlib.suppress(Empty):
            while True:
                message = self._messages.get_nowait()
                if message is not None and message[1] != LOST:
                    hear(*message)

    def listen(self, hear: Callable[[int, str, Any], None]) -> None:
        """Pass on messages until no worker is left.

        Args:
            hear: is called with the place of a job in ``jobs``, and with the kind and the value of
                a message of :meth:`Worker.receive`; the last one is ``"lost"`` with the reason if
                the job took its process with it.

        Raises:
            AttnscopeError: a worker died, or a job raised what is not an AttnscopeError; the other
                jobs are done first.
        """
        for _ in self._threads:
            while (message := self._messages.get()) is not None:
                if message[1] != LOST or message[2] is not None:
                    hear(*message)
                self._left -= message[1] != "part"
                if not self._left:
                    self._let_go()
        if self._failures:
            raise self._failures[0]

    def stop(self) -> None:
        """Ask the jobs under way to stop, and wait until they have."""
        self._stopping = True
        self._let_go()
        for worker in self._workers:
            worker.process.terminate()
        for worker, thread in zip(self._workers, self._threads, strict=True):
            thread.join(PATIENCE)
            if thread.is_alive():
                worker.process.kill()
                thread.join()


def _failure(reason: str, details: str) -> JobFailed:
    return JobFailed(
        f"a worker process died ({reason}). What it had written is kept: run again with --resume."
        f"\n{details}"
    )
