"""``attnscope report RUN``: the report of a run, with its figures as image files if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attnscope.cli.arguments import Parser


def parser(description: str) -> Parser:
    """Return what reads the words after ``attnscope report``."""
    made = Parser(prog="attnscope report", description=description)
    made.add_argument("run", help="the run's folder")
    made.add_argument("--out", metavar="DIR", help="where to; the run's folder unless given")
    made.add_argument(
        "--figures",
        nargs="+",
        default=(),
        metavar="ENDING",
        help="draw every figure as image files too: png, svg, pdf",
    )
    return made


def report(words: list[str], description: str) -> int:
    """Write the report and say where it lies."""
    options = parser(description).parse_args(words)

    from rich.console import Console

    from attnscope.results import write_report
    from attnscope.trajectory import open_run

    with Console(stderr=True).status("drawing the report"):
        path = write_report(open_run(options.run), options.out, figures=options.figures)
    text = f"report: {path}{beside(path, options.figures)}"
    Console().print(text, soft_wrap=True, highlight=False, markup=False)
    return 0


def beside(report: Path, figures: Sequence[str]) -> str:
    """Say where the images lie, if some were asked for."""
    if not figures:
        return ""
    endings = ", ".join(ending.upper() for ending in figures)
    return f"\nfigures: {report.parent / 'figures'} ({endings})"
