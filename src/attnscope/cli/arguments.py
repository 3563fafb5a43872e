"""Flags: one parser for every command, and one style of sentence for what it cannot take."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from attnscope.errors import AttnscopeError, nearest
from attnscope.limits import Limit

NEGATIVE = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$|-(inf|nan)$", re.IGNORECASE)
QUOTED = 80
"""Characters of a word that are quoted."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are sentences.

    A flag is given once and spelled out; ``--some_flag`` is ``--some-flag``.
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(allow_abbrev=False, exit_on_error=False, **given)
        # What argparse itself takes for a number has no exponent: -1e-3 would be a flag.
        self._negative_number_matcher = NEGATIVE
        self.spellings: dict[str, str | None] = {}
        """Older spellings of flags with the new ones; ``None`` for a flag that is gone."""

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options that the words of a command say.

        Raises:
            AttnscopeError: one of them is unknown, said twice, missing or of the wrong kind.
        """
        words = self._plain(words)
        flags = {
            flag: action.dest
            for flag, action in self._option_string_actions.items()
            if not isinstance(action, argparse._AppendAction)  # one that is meant to be repeated
        }
        refuse_repeated(words, flags)
        try:
            options, left = self.parse_known_intermixed_args(words)
        except argparse.ArgumentError as error:
            self._complain(error)
        if left:
            self._refuse([word for word in left if word.startswith("-")] or left)
        return options

    def flags(self) -> list[str]:
        """Return the flags that are meant to be seen."""
        seen = (a for a in self._actions if a.help != argparse.SUPPRESS)
        return [flag for action in seen for flag in action.option_strings]

    def actions(self) -> list[argparse.Action]:
        """Return all that the parser takes, for whoever completes or describes a command."""
        return list(self._actions)

    def error(self, message: str) -> NoReturn:
        """Say what argparse says of missing words in our own."""
        self._complain(argparse.ArgumentError(None, message))

    def _plain(self, words: Sequence[str]) -> list[str]:
        """Spell flags as they are declared."""
        plain: list[str] = []
        for place, word in enumerate(words):
            if word == "--":
                return [*plain, *words[place:]]
            flag, equals, value = word.partition("=")
            if not flag.startswith("--"):
                plain.append(word)
                continue
            if equals and value == "--":
                raise AttnscopeError(f"'{word}': expected a value after '='.")
            if flag not in self._option_string_actions:
                flag = flag.replace("_", "-")
            plain.append(f"{self._spelled(flag)}{equals}{value}")
        return plain

    def _spelled(self, flag: str) -> str:
        if flag not in self.spellings or flag in self._option_string_actions:
            return flag
        new = self.spellings[flag]
        if new is None:
            raise AttnscopeError(f"`{self.prog}` has no flag {flag} any more. {self._more()}")
        print(f"attnscope: {flag} is now called {new}", file=sys.stderr)
        return new

    def _refuse(self, left: Sequence[str]) -> NoReturn:
        word = left[0].split("=", 1)[0]
        if word.startswith("-") and len(word) > 1:
            raise AttnscopeError(
                f"`{self.prog}` has no flag '{_cut(word)}'.{nearest(word, self.flags())} "
                f"{self._more()}"
            )
        raise AttnscopeError(f"`{self.prog}`: '{_cut(word)}' is a word too many. {self._more()}")

    def _complain(self, error: argparse.ArgumentError) -> NoReturn:
        message = error.message
        missing = re.fullmatch(r"the following arguments are required: (.*)", message)
        if missing:
            raise AttnscopeError(f"`{self.prog}` needs {missing[1]}. {self._more()}")
        if error.argument_name is None:
            raise AttnscopeError(f"`{self.prog}`: {message}. {self._more()}")
        name = error.argument_name.split("/")[0]
        if re.match(r"expected (one|at least one|\d+) argument", message):
            count = message.split()[1] if "at least" not in message else "one or more"
            message = f"expected {'a' if count == 'one' else count} value{'s' * (count != 'one')}"
            raise AttnscopeError(f"{name}: {message}. {self._more()}")
        raise AttnscopeError(f"{name} {message}" + "." * (message[-1:] not in ".?"))

    def _more(self) -> str:
        return f"`{self.prog} --help` lists what it takes."

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


def whole(text: str) -> int:
    """Read a whole number."""
    return _read(int, text, "a whole number")


def real(text: str) -> float:
    """Read a number."""
    return _read(float, text, "a number")


def one_of(choices: Iterable[str]) -> Callable[[str], str]:
    """Return what reads one of some words."""
    known = list(choices)

    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(
                f"{_cut(text)}: expected {joined(known)}.{nearest(text, known)}"
            )
        return text

    return read


def joined(choices: Sequence[str]) -> str:
    """Return words as people list them: ``a, b or c``.

    >>> joined(["quick", "desk", "paper"])
    'quick, desk or paper'
    """
    *most, last = choices
    return f"{', '.join(most)} or {last}" if most else last


def add_choice(parser: Any, flag: str, choices: Sequence[str], **given: Any) -> None:
    """Add a flag that takes one of some words; help and completion list them."""
    parser.add_argument(flag, type=one_of(choices), choices=list(choices), **given)


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add the flag of commands that take their time."""
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="no progress and no tables: only where the result lies, and what went wrong",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the flag of commands whose answer another program may want to read."""
    parser.add_argument("--json", action="store_true", help="the same as JSON, for other programs")


def add_limits(parser: Any, *limits: Limit) -> None:
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


def _read(kind: Callable[[str], Any], text: str, expected: str) -> Any:
    try:
        return kind(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{_cut(text)}: expected {expected}") from None


def _cut(text: str) -> str:
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
