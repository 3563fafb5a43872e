"""The commands. A new one is a file here, with three things, and a line in the table.

``SAYS`` is what ``attnscope --help`` says of it, ``arguments`` adds its flags to a parser, ``call``
does it and returns the exit code. Nothing heavy is imported before it is called.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Protocol

from attnscope.cli.arguments import Parser
from attnscope.cli.verbs import (
    check,
    checkpoints,
    claims,
    compare,
    completion,
    data,
    export,
    lab,
    listing,
    models,
    new,
    predict,
    report,
    run,
    show,
    sweep,
    topics,
)


class Verb(Protocol):
    """A command: a module with these three."""

    SAYS: str

    def arguments(self, parser: Parser, words: list[str]) -> None:
        """Add the flags; ``words`` are those that will be parsed, for flags that depend on them."""

    def call(self, options: Namespace) -> int:
        """Do it; return the exit code."""


VERBS: dict[str, Verb] = {
    "list": listing,
    "run": run,
    "new": new,
    "sweep": sweep,
    "claims": claims,
    "checkpoints": checkpoints,
    "predict": predict,
    "topics": topics,
    "data": data,
    "models": models,
    "show": show,
    "report": report,
    "compare": compare,
    "export": export,
    "check": check,
    "lab": lab,
    "completion": completion,
}
