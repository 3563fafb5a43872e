"""Jobs one after the other in this process, by the interface of a pool."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.workers.process import JobFailed

Hear = Callable[[int, str, Any], None]


class Here:
    """Does jobs as :class:`Pool` does, without any other process.

    Args:
        function: is called as ``function(*args, job)``.
        jobs: the arguments of each.
        stopped: whether the job under way should return soon.
        args_now: returns the arguments of a job at the moment it begins.
    """

    def __init__(
        self,
        function: Callable[..., object],
        jobs: Iterable[tuple[Any, ...]],
        stopped: Callable[[], bool] = lambda: False,
        *,
        args_now: Callable[[int, tuple[Any, ...]], tuple[Any, ...]] = lambda _, args: args,
    ) -> None:
        self._function, self._stopped, self._args_now = function, stopped, args_now
        self._pending: deque[tuple[int, tuple[Any, ...]]] = deque()
        self._given = 0
        self._failures: list[JobFailed] = []
        for each in jobs:
            self.add(*each)

    def add(self, *args: Any) -> int:
        """Give another job; return its place in the row."""
        self._pending.append((self._given, args))
        self._given += 1
        return self._given - 1

    def listen(self, hear: Hear) -> None:
        """Do the jobs and pass on what they say.

        Raises:
            KeyboardInterrupt: somebody asked to stop.
            JobFailed: a job raised what is not an AttnscopeError; the other jobs are done first.
        """
        while self._pending:
            number, args = self._pending.popleft()
            try:
                given = self._args_now(number, args)
                value = self._function(*given, _Job(number, hear, self._stopped))
            except AttnscopeError as error:
                if not self._stopped():
                    hear(number, "sorry", str(error))
            except Exception as error:
                printed = traceback.format_exc()
                hear(number, "bug", printed)
                self._failures.append(JobFailed(f"{type(error).__name__}: {error}\n{printed}"))
            else:
                hear(number, "done", value)
            if self._stopped():
                raise KeyboardInterrupt
        if self._failures:
            raise self._failures[0]

    def rest(self, hear: Hear) -> None:
        """Nothing is left unheard."""

    def stop(self) -> None:
        """Begin no other job."""
        self._pending.clear()


class _Job:
    """The last argument of a function that runs here."""

    def __init__(self, number: int, hear: Hear, stopped: Callable[[], bool]) -> None:
        self._number, self._hear, self.stopped = number, hear, stopped

    def say(self, value: object) -> None:
        """Pass on a part of the result."""
        self._hear(self._number, "part", value)
