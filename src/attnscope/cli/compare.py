"""``attnscope compare A B``: the first step at which two runs differ, reading by reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli.arguments import Parser

if TYPE_CHECKING:
    from rich.console import RenderableType

    from attnscope.comparison import Comparison


def parser(description: str) -> Parser:
    """Return what reads the words after ``attnscope compare``."""
    made = Parser(
        prog="attnscope compare",
        description=f"{description}. Both are runs of one study, or both are watched.",
    )
    made.add_argument("a", metavar="A", help="the folder of a run")
    made.add_argument("b", metavar="B", help="the folder of another")
    made.add_argument(
        "--relative",
        type=float,
        default=1e-3,
        metavar="SHARE",
        help="relative difference beyond which readings count as apart (default: 0.001)",
    )
    made.add_argument("--out", metavar="DIR", help="folder for the page; A-vs-B beside A")
    made.add_argument("--no-report", action="store_true", help="write no page")
    return made


def compare(words: list[str], description: str) -> int:
    """Print where the runs part, and say where the page lies."""
    options = parser(description).parse_args(words)

    from rich.console import Console

    from attnscope.comparison import compare as compared
    from attnscope.report.terminal import plain_table

    found = compared(options.a, options.b, relative=options.relative)
    console = Console()

    def say(text: str, style: str = "") -> None:
        console.print(text, style=style, soft_wrap=True, highlight=False, markup=False)

    say(f"A: {found.a}\nB: {found.b}")
    if (settings := found.settings_table()) is not None:
        console.print(plain_table(settings))
    console.print(_table(found))
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
