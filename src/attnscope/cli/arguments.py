"""Flags: each once, spelled out, and the limits that every command which reads data has."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.limits import Limit


class Parser(argparse.ArgumentParser):
    """A parser that refuses a flag that is given twice; abbreviations are no flags."""

    def __init__(self, **given: Any) -> None:
        super().__init__(allow_abbrev=False, **given)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse after a look at what is said twice.

        Raises:
            AttnscopeError: a flag is, or its value is the mark that ends flags.
        """
        for word in args or ():
            if word.startswith("--") and word.endswith("=--"):
                raise AttnscopeError(f"'{word}': expected a value after '='.")
        flags = self._option_string_actions
        refuse_repeated(args or (), {flag: action.dest for flag, action in flags.items()})
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print; argparse would swallow that it failed."""
        if message:
            (file or sys.stderr).write(message)


def refuse_repeated(words: Sequence[str], names: dict[str, str]) -> None:
    """Refuse flags that are given twice: which of the two counts is nobody's guess.

    Args:
        words: the words of a command.
        names: what each flag sets; flags that set the same count as one.

    Raises:
        AttnscopeError: one is; the sentence quotes both.
    """
    said: dict[str, str] = {}
    for place, word in enumerate(words):
        if word == "--":
            return
        flag, equals, _ = word.partition("=")
        if flag not in names:
            continue
        after = words[place + 1] if place + 1 < len(words) else ""
        shown = word if equals or after.startswith("--") or not after else f"{flag} {after}"
        if names[flag] in said:
            raise AttnscopeError(
                f"'{said[names[flag]]}' and '{shown}' say the same thing twice: expected it once."
            )
        said[names[flag]] = shown


def add_limits(parser: argparse.ArgumentParser, *limits: Limit) -> None:
    """Add the flags of limits."""
    for limit in limits:
        parser.add_argument(
            limit.flag,
            metavar="N",
            help=f"{limit.what} at most (default: {limit.default:,})",
        )


def apply_limits(options: Any, *limits: Limit) -> None:
    """Set the limits whose flags were given, for this process and its workers.

    Raises:
        AttnscopeError: one is no number of 1 or more.
    """
    for limit in limits:
        given = getattr(options, f"max_{limit.what}")
        if given is not None:
            limit.allow(given)
