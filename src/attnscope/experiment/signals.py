"""Being asked to end: by Ctrl-C, by a scheduler (SIGTERM), by a closed terminal (SIGHUP)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ASKED = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stop:
    """Whether somebody asked to end.

    The first time a run ends after its current step, with a checkpoint; the second time does not
    wait.
    """

    def __init__(self) -> None:
        self._asked, self._at_once = threading.Event(), False
        self.signal = int(signal.SIGINT)
        """How somebody asked first."""

    def is_set(self) -> bool:
        """Return whether somebody asked."""
        return self._asked.is_set()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Raise KeyboardInterrupt when asked: somebody else holds the run and takes checkpoints."""
        self._at_once = True
        try:
            if self.is_set():
                raise KeyboardInterrupt
            yield
        finally:
            self._at_once = False

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Hear a signal."""
        again = self.is_set()
        if not again:
            self.signal = number
        self._asked.set()
        if again or self._at_once:
            raise KeyboardInterrupt


@contextmanager
def stopping() -> Iterator[Stop]:
    """Listen to signals, unless another thread would have to, or they are to be ignored."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    # Whoever runs this under nohup does not want to hear of a closed terminal.
    heard = [each for each in ASKED if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, stop.hear) for each in heard}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
