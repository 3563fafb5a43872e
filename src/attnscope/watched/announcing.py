"""A line in the console when a diagnosis of a training that goes on begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import ParamSpec

from attnscope.trajectory import open_run
from attnscope.watching import Scope
from attnscope.watching import watch as watch_silently
from attnscope.watching.recording.live import Logger, Values

APART, SHARE = 30.0, 100
"""Seconds from one look at the recording to the next, and how many times its own length."""

P = ParamSpec("P")


class Announcer(Logger):
    """Looks at a recording from time to time, beside the training, and says what is new.

    Args:
        folder: where it is.
        say: prints a line.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = print) -> None:
        super().__init__("the console", lambda step, values: None)
        self.folder, self.say = folder, say
        self.known: set[str] = set()
        self.next = time.monotonic() + APART
        self.thread: Thread | None = None

    def log(self, step: int, values: Callable[[], Values]) -> None:
        """Look, if it is time."""
        if time.monotonic() < self.next or self.broken:
            return
        self.next = float("inf")
        self.thread = Thread(target=self._quietly, args=(self.look,), daemon=True)
        self.thread.start()

    def look(self) -> None:
        """Say what has begun since the last look."""
        # Reading a run takes the whole of another room with it; most trainings are over before.
        from attnscope.watched.diagnosis import diagnose

        begun = time.monotonic()
        found = {each.name: each for each in diagnose(open_run(self.folder))}
        for name in found.keys() - self.known:
            self.say(f"attnscope: since step {found[name].since_step}: {found[name].sentence}")
        self.known = set(found)
        now = time.monotonic()
        self.next = now + max(APART, SHARE * (now - begun))


def announced(watch: Callable[P, Scope]) -> Callable[P, Scope]:
    """Have the diagnoses of what a function watches announced."""

    def announcing(*args: P.args, **kwargs: P.kwargs) -> Scope:
        scope = watch(*args, **kwargs)
        # A scope that another process fills, or that has not begun, has no folder to look at yet.
        return scope.log_to(Announcer(scope.folder.path)) if scope.recording else scope

    announcing.__doc__, announcing.__name__ = watch.__doc__, watch.__name__
    announcing.__wrapped__ = watch  # type: ignore[attr-defined]
    return announcing


watch = announced(watch_silently)
