"""What is printed: it never crashes a command, whatever the terminal or the disk can take."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def prepare() -> None:
    """Make standard streams such that printing any text is possible.

    A stream that is closed (``attnscope list >&-``) becomes one that takes everything, before a
    file of ours gets its number. A character that the encoding of the terminal does not have is
    shown as a question mark.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if name == "stdout" else "backslashreplace")


def complain(sentence: str) -> None:
    """Print a sentence on standard error; if nobody can read it, so be it."""
    with contextlib.suppress(OSError, ValueError):
        print(f"attnscope: {sentence}", file=sys.stderr, flush=True)


def flush(code: int = 0) -> int:
    """Bring what was printed to its reader; return the exit code, which says if that failed.

    Python would do it after the end of the program, with a message of its own. A reader that has
    gone, as in ``attnscope list | head -1``, has seen enough.

    Args:
        code: the exit code so far; unless it is 0, a sentence has been said.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError):
            return code
        if not code:
            complain(lost(error))
        return 2
    finally:
        try:
            sys.stderr.flush()
        except (OSError, ValueError):
            _give_up(sys.stderr)
    return code


def lost(error: Exception) -> str:
    """Say that what was printed could not be written."""
    what = getattr(error, "strerror", None) or error
    return f"standard output cannot be written ({what}): expected a place that takes it."


def refused(error: OSError) -> str:
    """Say what the system refuses, of which file."""
    what = error.strerror or str(error)
    if error.filename is None:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF):
            return lost(error)
        return f"the system says: {what}."
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    return f"'{str(name)[:300]}': {what}. Expected a file or folder that can be read and written."


WIDE = 20_000
"""Columns of what is no terminal: a table in a pipe or a file does not wrap."""
NARROW = 16
"""Columns at the least: in fewer a table would be cut down to nothing."""


def console(*, errors: bool = False) -> Console:
    """Return where text goes: as wide as the terminal, or as wide as the text if it is none.

    ``NO_COLOR`` and ``COLUMNS`` are heard.
    """
    from rich.console import Console

    made = Console(stderr=errors)
    if made.is_terminal or os.environ.get("COLUMNS"):
        return made if made.width >= NARROW else Console(stderr=errors, width=NARROW)
    return Console(stderr=errors, width=WIDE)


def say(text: str, style: str = "") -> None:
    """Print a text as it is: paths and addresses are kept whole, for copying."""
    from rich.text import Text

    show(Text(text, style=style))


def show(*things: RenderableType) -> None:
    """Print texts and tables; what is no terminal gets no blanks at the ends of its lines."""
    from rich.text import Text

    where = console()
    for thing in things:
        if isinstance(thing, Text):
            where.print(thing, soft_wrap=True, highlight=False)
        elif where.is_terminal:
            where.print(thing)
        else:
            with where.capture() as captured:
                where.print(thing)
            lines = captured.get().split("\n")
            sys.stdout.write("\n".join(line.rstrip() for line in lines))


def heading(text: str) -> None:
    """Print a heading: a line across a terminal, plain words elsewhere."""
    where = console()
    if where.is_terminal:
        from rich.text import Text

        where.rule(Text(text))
    else:
        say(text)


def print_json(value: Any) -> None:
    """Print a value for another program; what is no number is null."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextlib.contextmanager
def status(text: str, *, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Show what is being done while it is; what is yielded changes the text. For people alone."""
    where = console(errors=True)
    if quiet or not where.is_terminal:
        yield lambda _: None
        return
    with where.status(text) as shown:
        yield shown.update


def _give_up(stream: object) -> None:
    """Let a stream that cannot be written take what is left in it, so that its end is quiet."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[attr-defined]
        os.close(nowhere)
