"""``attnscope report RUN``: the report of a run, with its figures as image files if asked for."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from attnscope.cli.arguments import Parser, add_quiet, one_of
from attnscope.cli.folders import is_sweep

SAYS = "write the report of a run: attnscope report RUN --figures png svg pdf"
ENDINGS = ("png", "svg", "pdf")


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("--out", metavar="DIR", help="where to; the run's folder unless given")
    add_figures(parser)
    add_quiet(parser)


def add_figures(parser: Parser) -> None:
    """Add the flag that draws figures as image files."""
    parser.add_argument(
        "--figures",
        nargs="+",
        default=(),
        type=one_of(ENDINGS),
        metavar="ENDING",
        help="draw every figure as image files too: png, svg, pdf",
    )


def call(options: Namespace) -> int:
    """Write the report and say where it lies."""
    from attnscope.cli.terminal import say, status

    with status("drawing the report", quiet=options.quiet):
        if is_sweep(options.run):
            from attnscope.sweeps import open_sweep
            from attnscope.sweeps.report import write_report as write_sweep

            path = write_sweep(open_sweep(options.run), options.out, figures=options.figures)
        else:
            from attnscope.results import write_report
            from attnscope.trajectory import open_run

            path = write_report(open_run(options.run), options.out, figures=options.figures)
    say(f"report: {path}{beside(path, options.figures)}")
    return 0


def beside(report: Path, figures: Sequence[str]) -> str:
    """Say where the images lie, if some were asked for."""
    if not figures:
        return ""
    endings = ", ".join(ending.upper() for ending in figures)
    return f"\nfigures: {report.parent / 'figures'} ({endings})"
