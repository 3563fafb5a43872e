"""The command line: it parses, calls, prints."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence

from attnscope import __version__
from attnscope.cli.arguments import Parser
from attnscope.cli.terminal import complain, flush, prepare, refused
from attnscope.errors import AttnscopeError, nearest

VERBS = {
    "list": "the studies there are",
    "run": "run a study: attnscope run lu2021.sen, attnscope run mine.py",
    "new": "write a small study of your own to start from: attnscope new mine.py",
    "claims": "the claims ledger over the runs there are",
    "show": "what a run is, and what came of it",
    "check": "whether runs are whole: attnscope check runs/* --repair",
    "report": "write the report of a run: attnscope report RUN --figures png svg pdf",
    "compare": "the first step at which two runs differ, reading by reading: attnscope compare A B",
    "checkpoints": "a trajectory from saved weights: attnscope checkpoints DIR --out RUN",
    "watch": "the same by its older name: attnscope watch --checkpoints DIR --out RUN",
    "export": "the curves of a run as CSV, or for TensorBoard, W&B, MLflow",
    "topics": "the topics of a corpus: attnscope topics wikitext-2-v1.zip --out FILE",
    "data": "the data sets that studies read: attnscope data get sst2",
    "lab": "the lab in the browser: training runs that answer a slider",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code: 0, or 2 with a sentence on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    prepare()
    # A warning is for the person at the terminal, who has no use for our line of code.
    before, warnings.showwarning = warnings.showwarning, _show_once()
    try:
        code = _answered(words)
    except SystemExit as left:
        # argparse and tyro leave so, with 0 or 2; rich with 1 when the reader of a pipe has gone.
        raise SystemExit(flush(2 if left.code == 2 else 0)) from None
    finally:
        warnings.showwarning = before
    return flush(code)


def _answered(words: list[str]) -> int:
    """Return the exit code; whatever a person can do something about is a sentence."""
    try:
        return _dispatch(words)
    except AttnscopeError as error:
        complain(str(error))
    except KeyboardInterrupt:
        complain("interrupted. What was written is kept.")
    except BrokenPipeError:
        return 0  # The reader of a pipe has gone, as in `attnscope list | head -1`.
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
    verb = words[0] if words else "--help"
    if verb in ("-h", "--help"):
        print(_help())
        return 0
    if verb == "--version":
        print(f"attnscope {__version__}")
        return 0
    if verb not in VERBS:
        raise AttnscopeError(
            f"there is no command '{verb}'.{nearest(verb, VERBS)} "
            f"Expected one of: {', '.join(VERBS)}."
        )
    rest = words[1:]
    if verb == "run":
        from attnscope.cli.run import run

        return run(rest)
    if verb == "data":
        from attnscope.cli.data import data

        return data(rest)
    if verb == "topics":
        from attnscope.cli.topics import topics

        return topics(rest, VERBS[verb])
    if verb in ("checkpoints", "watch"):
        from attnscope.cli.watch import checkpoints

        return checkpoints(rest, VERBS["checkpoints"], verb)
    if verb == "report":
        from attnscope.cli.report import report

        return report(rest, VERBS[verb])
    if verb == "compare":
        from attnscope.cli.compare import compare

        return compare(rest, VERBS[verb])
    if verb == "lab":
        from attnscope.cli.lab import lab

        return lab(rest, VERBS[verb])
    if verb == "check":
        from attnscope.cli.check import check

        return check(rest, VERBS[verb])
    if verb == "export":
        from attnscope.cli.export import export

        return export(rest, VERBS[verb])
    if verb == "list":
        from attnscope.cli.listing import listing

        _parser("list").parse_args(rest)
        return listing()
    if verb == "new":
        from attnscope.cli.new import new

        parser = _parser("new")
        parser.add_argument("file", help="the file to write, such as mine.py")
        return new(parser.parse_args(rest).file)
    if verb == "claims":
        from attnscope.cli.ledger import ledger

        parser = _parser("claims")
        parser.add_argument("paper", nargs="?", default="", help="only claims of this paper")
        parser.add_argument("--runs", default="runs", help="folder of runs (default: runs)")
        options = parser.parse_args(rest)
        return ledger(options.paper, options.runs)
    from attnscope.cli.show import show

    parser = _parser("show")
    parser.add_argument("run", help="the run's folder")
    return show(parser.parse_args(rest).run)


def _parser(verb: str) -> Parser:
    return Parser(prog=f"attnscope {verb}", description=VERBS[verb])


def _help() -> str:
    lines = [f"  {verb:11} {text}" for verb, text in VERBS.items()]
    return "\n".join(
        [
            "usage: attnscope COMMAND ...",
            "",
            "A laboratory for how attention learns: trajectories, theory laid over them, verdicts.",
            "",
            *lines,
            "",
            "attnscope COMMAND --help says more; attnscope run STUDY --help lists every field.",
        ]
    )
