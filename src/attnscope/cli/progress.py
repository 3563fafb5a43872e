"""A progress bar for people, silence for files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from attnscope.experiment import Experiment, Listener


@contextmanager
def progress(study: Experiment) -> Iterator[Listener]:
    """Show how much of the training time of all runs is done."""
    total = len(study.runs())
    fractions: dict[int, float] = {}
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[done]} of {task.total:.0f} runs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        refresh_per_second=8,
        disable=not Console(stderr=True).is_terminal,
    )
    with bar:
        task = bar.add_task(study.name(), total=total, done=0)

        def listen(run: int, fraction: float) -> None:
            fractions[run] = fraction
            done = sum(value >= 1 for value in fractions.values())
            bar.update(task, completed=sum(fractions.values()), done=done)

        yield listen
