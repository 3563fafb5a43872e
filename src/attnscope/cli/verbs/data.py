"""``attnscope data``: the data sets there are, whether they are here, and how to get them."""

from __future__ import annotations

import argparse
from argparse import Namespace
from pathlib import Path

from attnscope.cli.arguments import Parser, add_json, add_limits, add_quiet, apply_limits
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS

SAYS = "the data sets that studies read: attnscope data get sst2"
USAGE = """attnscope data [--json]                    the data sets, and which are here
       attnscope data NAME [--json]               everything about one
       attnscope data check NAME                  verify its files and count its rows
       attnscope data get NAME                    download it from its publisher
       attnscope data pathfinder --sheet FILE.png draw samples of what is generated"""


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.usage = USAGE
    parser.description = (
        "The folder is --data-dir, then $ATTNSCOPE_DATA, then attnscope in the user's cache."
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--data-dir", metavar="DIR", help="the folder that holds the data")
    parser.add_argument("--sheet", metavar="FILE", help="a PNG of generated images to write")
    add_limits(parser, ROWS, BYTES)
    add_json(parser)
    add_quiet(parser)


def call(options: Namespace) -> int:
    """List, describe, check or fetch data sets."""
    from attnscope.cli import data_sets
    from attnscope.datasets.catalogue import CATALOGUE, entry
    from attnscope.datasets.check import check
    from attnscope.datasets.place import data_dir

    apply_limits(options, ROWS, BYTES)
    folder = data_dir(options.data_dir)
    if options.sheet is not None:
        return data_sets.draw_sheet(options.words, Path(options.sheet))
    match options.words:
        case []:
            return data_sets.print_list(folder, as_json=options.json)
        case ["check" | "get" as verb]:
            raise AttnscopeError(
                f"`attnscope data {verb}` needs a name. Expected one of: {', '.join(CATALOGUE)}."
            )
        case ["check", name]:
            return data_sets.print_report(check(entry(name), folder))
        case ["get", name]:
            return data_sets.fetch(entry(name), folder, options.quiet)
        case [name]:
            return data_sets.describe(entry(name), folder, as_json=options.json)
        case _:
            said = " ".join(options.words)
            raise AttnscopeError(
                f"`attnscope data {said}` is not understood. Expected a name, or `check` or `get` "
                "and a name."
            )
