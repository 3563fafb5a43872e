"""``attnscope new FILE``: a small study that runs as it is."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from attnscope.cli.arguments import Parser
from attnscope.errors import AttnscopeError

SAYS = "write a small study of your own to start from: attnscope new mine.py"


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("file", metavar="FILE", help="the file to write, such as mine.py")


def call(options: Namespace) -> int:
    """Write a study whose comments say what to change; a file that is there is left alone."""
    from importlib.resources import files

    from attnscope import cli
    from attnscope.files import write_bytes

    path = Path(options.file)
    if path.suffix != ".py":
        raise AttnscopeError(f"'{path}' is no name of a Python file: expected one such as mine.py.")
    if path.exists():
        raise AttnscopeError(f"'{path}' exists: expected the name of a file that does not.")
    write_bytes(path, files(cli).joinpath("template.txt").read_bytes())
    print(f"{path} is a study: its comments say what to change. Run it as it is:")
    print(f"  attnscope run {path}")
    return 0
