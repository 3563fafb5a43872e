"""How far the work is: a bar for people, plain lines for logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attnscope.cli.terminal import complain, console

if TYPE_CHECKING:
    from attnscope.experiment import Listener

FIRST, OFTEN, SELDOM = 10.0, 10.0, 300.0
"""Seconds until the first line of a log, and between two lines at least; seldom, in long runs."""


@contextmanager
def progress(
    name: str, total: int, what: str = "runs", *, quiet: bool = False
) -> Iterator[Listener]:
    """Show how much of the work is done, and how long the rest may take.

    Args:
        name: of the work.
        total: how many parts it has.
        what: what the parts are called.
        quiet: show nothing.

    Yields:
        What hears of a part, by its number, and the fraction of it that is done.
    """
    if quiet:
        yield lambda run, fraction: None
    elif console(errors=True).is_terminal:
        fractions: dict[int, float] = {}
        with _bar(name, total, what) as tell:

            def listen(run: int, fraction: float) -> None:
                fractions[run] = fraction
                done = sum(value >= 1 for value in fractions.values())
                tell(sum(fractions.values()), total, done)

            yield listen
    else:
        yield Lines(name, total, what)


@contextmanager
def growing(name: str, what: str, *, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """Show how much is done of work of which more may come on the way.

    Args:
        name: of the work.
        what: what its parts are called.
        quiet: show nothing.

    Yields:
        What hears how much is done, how many parts there are by now, and how many are complete.
    """
    if quiet:
        yield lambda done, total, complete: None
    elif console(errors=True).is_terminal:
        with _bar(name, 1, what) as tell:
            yield tell
    else:
        lines = Lines(name, 1, what)

        def hear(done: float, total: int, complete: int) -> None:
            lines.total = total
            lines.hear(done, complete)

        yield hear


@contextmanager
def _bar(name: str, total: int, what: str) -> Iterator[Callable[[float, int, int], None]]:
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=None),
        TextColumn(f"{{task.fields[done]}} of {{task.total:.0f}} {what}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console(errors=True),
        refresh_per_second=8,
    )
    with bar:
        task = bar.add_task(name, total=total, done=0)

        def tell(done: float, total: int, complete: int) -> None:
            bar.update(task, completed=done, total=total, done=complete)

        yield tell


class Lines:
    """Progress as lines of a log: seldom enough to be read, and each with the time left.

    Args:
        name: of the work.
        total: how many parts it has.
        what: what the parts are called.
        clock: seconds that only grow.
        write: takes a line; standard error unless given.
    """

    def __init__(
        self,
        name: str,
        total: int,
        what: str = "runs",
        *,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] = complain,
    ) -> None:
        self.name, self.total, self.what = name, total, what
        self._clock, self._write = clock, write
        self._begun = clock()
        self._next = self._begun + FIRST
        self._fractions: dict[int, float] = {}
        self._first: float | None = None

    def __call__(self, run: int, fraction: float) -> None:
        """Hear that a part has come so far; write a line if it is time for one."""
        self._fractions[run] = fraction
        complete = sum(value >= 1 for value in self._fractions.values())
        done = sum(self._fractions.values())
        if complete == len(self._fractions) and self._clock() < self._begun + FIRST:
            self._first = done  # Runs that are there are told before any other begins.
        self.hear(done, complete)

    def hear(self, done: float, complete: int) -> None:
        """Hear how much is done, and how many parts are complete."""
        now = self._clock()
        if self._first is None:
            self._first = done  # What an earlier command did is no part of this one's speed.
        if now < self._next or done <= self._first:
            return
        # A line when the time that has passed has grown by a tenth: 10 s apart at first.
        self._next = now + min(max(OFTEN, (now - self._begun) / 10), SELDOM)
        left = (now - self._begun) * (self.total - done) / (done - self._first)
        self._write(
            f"{self.name}: {done / self.total:4.0%}, {complete} of {self.total} {self.what}, "
            f"{span(now - self._begun)} gone, about {span(left)} left"
        )


def span(seconds: float) -> str:
    """Write a time as people say it.

    >>> span(42), span(150), span(7800)
    ('42 s', '2 min 30 s', '2 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
