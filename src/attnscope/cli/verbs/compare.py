"""``attnscope compare A B``: the first step at which two runs differ, reading by reading."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli.arguments import Parser, real

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnscope.comparison import Comparison

SAYS = "the first step at which two runs differ, reading by reading: attnscope compare A B"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.description = f"{SAYS}. Both are runs of one study, or both are watched."
    parser.add_argument("a", metavar="A", help="the folder of a run")
    parser.add_argument("b", metavar="B", help="the folder of another")
    parser.add_argument(
        "--relative",
        type=real,
        default=1e-3,
        metavar="SHARE",
        help="relative difference beyond which readings count as apart (default: 0.001)",
    )
    parser.add_argument("--out", metavar="DIR", help="folder for the page; A-vs-B beside A")
    parser.add_argument("--no-report", action="store_true", help="write no page")


def call(options: Namespace) -> int:
    """Print where the runs part, and say where the page lies."""
    from attnscope.cli.terminal import say, show
    from attnscope.comparison import compare as compared
    from attnscope.report.terminal import plain_table

    found = compared(options.a, options.b, relative=options.relative)
    say(f"A: {found.a}\nB: {found.b}")
    if (settings := found.settings_table()) is not None:
        show(plain_table(settings))
    show(_table(found))
    if found.left_out:
        told = "; ".join(f"{name} ({why})" for name, why in found.left_out.items())
        say(f"not compared: {told}")
    for note in found.notes:
        say(note)
    say(found.sentence, "bold")
    if not options.no_report:
        first = Path(options.a)
        out = Path(options.out or first.parent / f"{first.name}-vs-{Path(options.b).name}")
        say(f"report: {found.write_report(out)}")
    return 0


def _table(found: Comparison) -> RenderableType:
    """Return the readings, a row each, narrow enough for a terminal."""
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    drawn.add_column("reading", no_wrap=True)
    for heading in ("differs", f"by > {found.threshold:g}", "largest", "at step"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    drawn.add_column("where most", overflow="fold")
    for name, first, beyond, place, largest, at, _ in found.table().rows:
        cells = (name, first, beyond, f"{largest:.3g}", at, place)
        drawn.add_row(*(Text(str(cell)) for cell in cells))
    return drawn
