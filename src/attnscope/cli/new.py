"""``attnscope new FILE``: a small study that runs as it is."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes


def new(name: str) -> int:
    """Write a study whose comments say what to change; a file that is there is left alone."""
    path = Path(name)
    if path.suffix != ".py":
        raise AttnscopeError(f"'{name}' is no name of a Python file: expected one such as mine.py.")
    if path.exists():
        raise AttnscopeError(f"'{path}' exists: expected the name of a file that does not.")
    write_bytes(path, files(__package__).joinpath("template.txt").read_bytes())
    print(f"{path} is a study: its comments say what to change. Run it as it is:")
    print(f"  attnscope run {path}")
    return 0
