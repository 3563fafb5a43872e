"""What a page may say over its socket: a message of a known shape and size, or a refusal.

The other end need not be our page. A number of 400 digits, a name that is half a letter, ten
thousand brackets or sixty thousand names are read here and go no further.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

from attnscope.errors import AttnscopeError

LONGEST = 1 << 14
"""Bytes of a message; those of our own page have about 500."""
NAMES = 50
"""Controls in a setting, and figures that a page has drawn."""
LETTERS = 200
"""Of a name or a word."""
LARGEST = 1 << 53
"""The whole numbers that a browser can say are smaller."""


class NonsenseError(AttnscopeError):
    """A message without sense, and what is the matter with it."""


@dataclass(frozen=True)
class Wish:
    """What a page says.

    Args:
        side: of the page, ``a`` or ``b``.
        ask: the number by which the page knows its answer.
        stop: whether nothing is wanted any more.
        world: the name of a world, if anything is wanted.
        setting: values by the names of controls.
        have: signatures of the figures that the page has drawn already.
    """

    side: str
    ask: int = 0
    stop: bool = False
    world: str = ""
    setting: dict[str, Any] = field(default_factory=dict)
    have: tuple[str, ...] = ()


def read(text: str, sides: tuple[str, ...]) -> Wish:
    """Read a message.

    Raises:
        NonsenseError: it has not the shape of one.
    """
    if len(text) > LONGEST:
        raise NonsenseError(f"{len(text):,} characters: expected {LONGEST:,} or fewer")
    try:
        said = json.loads(text, parse_constant=_constant)
    except (ValueError, RecursionError):
        raise NonsenseError("it cannot be read: expected JSON") from None
    if not isinstance(said, dict) or said.get("side") not in sides:
        raise NonsenseError(f"expected a side, {' or '.join(sides)}, and what it wants")
    ask = said.get("ask", 0)
    if type(ask) is not int or not 0 <= ask < LARGEST:
        raise NonsenseError("expected a whole number as the number of what is asked")
    if said.get("stop") is True:
        return Wish(said["side"], ask, stop=True)
    world, setting, have = said.get("world", ""), said.get("setting"), said.get("have", [])
    if not _is_word(world):
        raise NonsenseError("expected the name of a world")
    if not isinstance(setting, dict) or len(setting) > NAMES:
        raise NonsenseError(f"expected a setting of at most {NAMES} names and values")
    if not all(_is_word(name) and _is_value(value) for name, value in setting.items()):
        raise NonsenseError("expected numbers and words in the setting")
    if not isinstance(have, list) or len(have) > NAMES or not all(map(_is_word, have)):
        raise NonsenseError(f"expected the names of at most {NAMES} figures")
    return Wish(said["side"], ask, world=world, setting=setting, have=tuple(have))


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_word(value: Any) -> bool:
    """Whether a value is a short text that can be written down: no half of a letter is in it."""
    return isinstance(value, str) and len(value) <= LETTERS and _is_text(value)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_value(value: Any) -> bool:
    if isinstance(value, int | float):
        return abs(value) < LARGEST if isinstance(value, int) else math.isfinite(value)
    return value is None or _is_word(value)
