"""When a run says how far it is, and when it keeps a checkpoint."""

from __future__ import annotations

import time as clock
from collections.abc import Callable

from attnscope.engines.sink import Checkpoint

SHARE = 50
"""Seconds of training for one of keeping checkpoints, at least."""


class Paced:
    """A sink that looks at the clock after each step.

    Args:
        every: seconds between two checkpoints; more where keeping one takes long.
        progress: is told the time reached, at most ten times a second.
        interrupted: is asked before each step whether to stop.
    """

    def __init__(
        self,
        every: float,
        progress: Callable[[float], None] | None,
        interrupted: Callable[[], bool],
    ) -> None:
        self.every, self.progress, self.interrupted = every, progress, interrupted
        self.kept = self.told = self.begun = clock.monotonic()

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        """Keep a checkpoint now and then; stop if asked to."""
        now = clock.monotonic()
        if self.progress is not None and now - self.told > 0.1:
            self.told = now
            self.progress(time)
        if now - self.kept > self.every:
            self.keep(checkpoint)
            self.kept = clock.monotonic()
            self.every = max(self.every, SHARE * (self.kept - now))
        return not self.interrupted()

    def keep(self, checkpoint: Callable[[], Checkpoint]) -> None:
        """Keep all readings so far, and then a checkpoint."""
        raise NotImplementedError
