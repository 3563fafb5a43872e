"""``attnscope list [PAPER]``: the studies there are."""

from __future__ import annotations

from argparse import Namespace

from attnscope.cli.arguments import Parser, add_json

SAYS = "the studies there are: attnscope list, attnscope list lu2021"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="only studies of this paper")
    add_json(parser)


def call(options: Namespace) -> int:
    """Print the studies; nothing heavy is imported."""
    from attnscope.catalogue import names, of_paper, summary
    from attnscope.cli.terminal import print_json

    found = names() if options.paper is None else of_paper(options.paper)
    if options.json:
        print_json(
            [{"name": n, "paper": n.partition(".")[0], "summary": summary(n)} for n in found]
        )
    else:
        print_studies(found)
    return 0


def print_studies(found: list[str]) -> None:
    """Print a table of studies."""
    from rich.table import Table
    from rich.text import Text

    from attnscope.catalogue import summary
    from attnscope.cli.terminal import show

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("study", no_wrap=True, style="cyan")
    table.add_column("what it shows")
    for name in found:
        table.add_row(name, Text(summary(name)))
    show(table)
