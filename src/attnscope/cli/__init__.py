"""The command line: it parses, calls, prints.

Every command is one file in :mod:`attnscope.cli.verbs` and one line in the table there.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence

from attnscope import __version__
from attnscope.cli.arguments import Parser
from attnscope.cli.doors import doors, overview
from attnscope.cli.terminal import complain, flush, prepare, refused
from attnscope.cli.verbs import VERBS
from attnscope.errors import AttnscopeError, Interrupted, nearest
from attnscope.needs import missing

INTERRUPTED = 130
"""What shells call the end by Ctrl-C: 128 + SIGINT."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code.

    0: it is done. 1: what was asked for is not as it should be (``check``, ``--strict``). 2: it
    cannot be done, with a sentence on standard error. 130: Ctrl-C.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    prepare()
    # A warning is for the person at the terminal, who has no use for our line of code.
    before, warnings.showwarning = warnings.showwarning, _show_once()
    try:
        return flush(_answered(words))
    finally:
        warnings.showwarning = before


def parser_of(verb: str, words: Sequence[str] = ()) -> Parser:
    """Return what reads the words after a command."""
    made = Parser(prog=f"attnscope {verb}", description=VERBS[verb].SAYS)
    VERBS[verb].arguments(made, list(words))
    return made


def _answered(words: list[str]) -> int:
    """Return the exit code; whatever a person can do something about is a sentence."""
    try:
        return _dispatch(words)
    except Interrupted as error:
        complain(str(error))
        return 128 + error.signal
    except AttnscopeError as error:
        complain(str(error))
    except KeyboardInterrupt:
        complain("interrupted. What was written is kept.")
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # The reader of a pipe has gone, as in `attnscope list | head -1`.
    except SystemExit as left:
        # After --help; rich leaves so when the reader of a pipe has gone.
        return 2 if left.code == 2 else 0
    except ModuleNotFoundError as error:
        said = missing(error)
        if said is None:
            raise
        complain(str(said))
    except OSError as error:
        complain(refused(error))
    except MemoryError as error:
        complain(f"there is not enough memory ({error}): expected smaller numbers or less data.")
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):  # PyTorch has no exception of its own.
            raise
        complain("there is not enough memory: expected smaller numbers or less data.")
    return 2


def _show_once() -> Callable[..., None]:
    """Return what prints a warning as a sentence, each sentence once."""
    said: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            complain(f"warning: {message}")

    return show


def _dispatch(words: list[str]) -> int:
    if not words:
        print(doors())
        return 0
    verb, rest = words[0], words[1:]
    if verb in ("-h", "--help"):
        print(overview({name: each.SAYS for name, each in VERBS.items()}))
        return 0
    if verb in ("-V", "--version"):
        print(f"attnscope {__version__}")
        return 0
    if verb == "watch":
        from attnscope.cli.verbs.checkpoints import once_watch

        verb, rest = "checkpoints", once_watch(rest)
    if verb not in VERBS:
        raise AttnscopeError(
            f"there is no command '{verb}'.{nearest(verb, VERBS)} "
            f"Expected one of: {', '.join(VERBS)}."
        )
    options = parser_of(verb, rest).parse(rest)
    options.said = rest
    return VERBS[verb].call(options)
