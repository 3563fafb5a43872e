"""The one error that is meant for the person at the keyboard."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AttnscopeError(Exception):
    """A sentence that quotes the input and says what was expected.

    The command line prints it and exits with code 2; from Python it is an ordinary exception.
    """


class DiskFullError(AttnscopeError):
    """The disk filled up while a trajectory was written; what was flushed before is kept."""


class Interrupted(AttnscopeError):
    """Ctrl-C, or another signal: what was done is kept.

    Args:
        sentence: what is kept, and how to go on.
        signal: its number; the command line exits with 128 more.
    """

    def __init__(self, sentence: str, signal: int = 2) -> None:
        super().__init__(sentence)
        self.signal = signal


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known name, or an empty string.

    >>> nearest("lu2021.senn", ["lu2021.sen", "lu2021.cnn"])
    " Did you mean 'lu2021.sen'?"
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean '{close[0]}'?" if close else ""
