"""How much is read and run at most, so that a packed bomb or a slipped digit ends in a sentence.

A limit has a default that ordinary work never meets, a flag and an environment variable. The
variable reaches worker processes, and a spec stays free of how much a machine can bear.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from attnscope.errors import AttnscopeError

__all__ = ["BYTES", "POINTS", "ROWS", "RUNS", "STREAMED_BYTES", "STREAMED_ROWS", "Limit"]


@dataclass(frozen=True)
class Limit:
    """A number that is not to be exceeded.

    Args:
        what: what is counted; it names the flag and the variable.
        default: the number, unless the variable holds another.
    """

    what: str
    default: int

    @property
    def flag(self) -> str:
        """The flag of the command line, such as ``--max-rows``."""
        return f"--max-{self.what}"

    @property
    def variable(self) -> str:
        """The environment variable, such as ``ATTNSCOPE_MAX_ROWS``."""
        return f"ATTNSCOPE_MAX_{self.what.upper()}"

    def value(self) -> int:
        """Return the number.

        Raises:
            AttnscopeError: the variable holds something else.
        """
        said = os.environ.get(self.variable, "")
        return _whole(said, f"{self.variable} = ") if said else self.default

    def allow(self, count: str | int) -> None:
        """Set the number for this process and for the workers that it starts.

        Raises:
            AttnscopeError: it is none.
        """
        os.environ[self.variable] = str(_whole(str(count), f"{self.flag} "))

    def check(self, count: int, found: str) -> None:
        """Refuse a number that is too large.

        Raises:
            AttnscopeError: it is; ``found`` begins the sentence.
        """
        if count > self.value():
            raise self.exceeded(found)

    def exceeded(self, found: str) -> AttnscopeError:
        """Return the error for something that has more; the caller raises it."""
        return AttnscopeError(
            f"{found}: expected at most {self.value():,} {self.what}. If it is right, allow more "
            f"by {self.flag} or {self.variable}."
        )


def _whole(said: str, name: str) -> int:
    if not (said.isascii() and said.isdigit() and len(said) < 20 and int(said)):
        raise AttnscopeError(f"{name}{said[:40]}: expected a whole number of 1 or more.")
    return int(said)


ROWS = Limit("rows", 10_000_000)
"""Rows, lines or files of what is held in memory; the largest published set has 7 million."""
BYTES = Limit("bytes", 16 * 2**30)
"""Bytes of what is held in memory, after unpacking."""
STREAMED_ROWS = Limit("rows", 10**9)
"""Rows of a corpus that is read as a stream."""
STREAMED_BYTES = Limit("bytes", 2**40)
"""Bytes of a corpus that is read as a stream; all of Wikipedia is a tenth of it."""
RUNS = Limit("runs", 10_000)
"""Runs of a study: cases × seeds."""
POINTS = Limit("points", 10_000)
"""Points of a sweep."""
