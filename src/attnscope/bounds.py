"""What a field may hold, declared in its annotation and checked in one place.

::

    @dataclass(frozen=True)
    class Task:
        words: Count = 20          # 1 or more
        noise: Positive = 1e-3     # a finite number above 0

        def __post_init__(self) -> None:
            check_fields(self)
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
import types
import typing
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Literal, Union

from attnscope.errors import AttnscopeError

__all__ = [
    "Amount",
    "Bounds",
    "Count",
    "Finite",
    "Fraction",
    "Natural",
    "Positive",
    "Several",
    "check_fields",
    "fits",
    "hints",
]


@dataclasses.dataclass(frozen=True)
class Bounds:
    """A number from ``low`` to ``high``; an end that is ``open`` does not belong to it."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def admits(self, value: float) -> bool:
        """Return whether a number lies within; what is not a number does not."""
        above = self.low < value if self.open_low else self.low <= value
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def __str__(self) -> str:
        if (self.low, self.high) == (-math.inf, math.inf):
            return "a finite number"
        if self.high == math.inf and not self.open_low:
            return f"{self.low:g} or more"
        low = f"above {self.low:g}" if self.open_low else f"from {self.low:g}"
        if self.high == math.inf:
            return f"a finite number {low}"
        return f"a number {low} to {'below ' if self.open_high else ''}{self.high:g}"


Count = Annotated[int, Bounds(1)]
"""1 or more."""
Several = Annotated[int, Bounds(2)]
"""2 or more."""
Natural = Annotated[int, Bounds(0)]
"""0 or more."""
Positive = Annotated[float, Bounds(0, math.inf, open_low=True, open_high=True)]
"""A finite number above 0."""
Amount = Annotated[float, Bounds(0, math.inf, open_high=True)]
"""A finite number of 0 or more."""
Finite = Annotated[float, Bounds(-math.inf, math.inf, open_low=True, open_high=True)]
"""Any finite number, negative ones too."""
Fraction = Annotated[float, Bounds(0, 1)]
"""A number from 0 to 1."""

LARGEST_COUNT = 10**9
"""No whole number may be larger: what is counted is held in memory or taken step by step."""
LARGEST_NUMBER = 1e100
"""No other number may be larger, or nearer to 0 than 1 over it: quotients of two stay finite."""
QUOTED = 200
"""Characters of a value that are quoted."""

_KINDS: dict[type, tuple[type, str]] = {
    bool: (bool, "True or False"),
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    str: (str, "a text"),
}


def check_fields(value: Any) -> None:
    """Check every field of a dataclass against its annotation.

    Whatever an annotation declares: numbers are finite, and neither they nor texts are such that
    no computation or no file could hold them.

    Raises:
        AttnscopeError: one is out of its bounds; the sentence quotes it.
    """
    owner: Any = type(value)
    known = hints(owner)
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        expected = _fault(found, known.get(field.name, Any))
        if expected:
            raise AttnscopeError(f"{field.name} = {_quoted(found)}: expected {expected}.")


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is what an annotation asks for; numbers need not be finite."""
    return not _unfit(value, hint)


@cache
def hints(owner: Any) -> dict[str, Any]:
    """Return the annotations of a class and its bases, with their bounds.

    Class variables are left out, and what names a type that is there for type checkers only.
    """
    found: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        names = vars(sys.modules.get(base.__module__, types))
        for name, hint in inspect.get_annotations(base).items():
            if isinstance(hint, str):
                if hint.startswith("ClassVar"):
                    continue
                try:
                    hint = eval(hint, dict(names), dict(vars(base)))
                except NameError:
                    continue
            known = found.get(name)
            if typing.get_origin(known) is Annotated and typing.get_args(known)[0] is hint:
                continue  # another default for the same field, which keeps its bounds
            if typing.get_origin(hint) is not ClassVar:
                found[name] = hint
    return found


def _fault(value: Any, hint: Any) -> str:
    """Return what was expected instead of a value, or nothing if it is right."""
    return _unfit(value, hint) or _excess(value, hint)


def _unfit(value: Any, hint: Any) -> str:
    """Return what an annotation asks for, if a value is something else."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        fault = _unfit(value, parts[0])
        if fault:
            return fault
        for bounds in parts[1:]:
            if isinstance(bounds, Bounds) and not bounds.admits(value):
                return str(bounds)
        return ""
    if origin is Literal:
        return "" if value in parts else _listed([repr(part) for part in parts])
    if origin in (Union, types.UnionType):
        faults = [_fault(value, part) for part in parts]
        return "" if "" in faults else _listed(list(dict.fromkeys(faults)))
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        if not isinstance(value, tuple):
            return "several values"
        return next((f"each to be {f}" for f in (_fault(v, parts[0]) for v in value) if f), "")
    if hint is types.NoneType:
        return "" if value is None else "None"
    if hint in _KINDS:
        kind, words = _KINDS[hint]
        right = isinstance(value, kind) and (hint is bool or not isinstance(value, bool))
        return "" if right else words
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return "" if isinstance(value, hint) else f"a {hint.__name__}"
    return ""


def _excess(value: Any, hint: Any) -> str:
    """Return what is expected instead of a value that nothing could be done with."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return "a text that is UTF-8"
        return "a text without NUL characters" if "\0" in value else ""
    if isinstance(value, bool) or not isinstance(value, Real):
        return ""
    number: Any = value
    if int in (hint, *typing.get_args(hint)[:1]):
        right = -LARGEST_COUNT <= number <= LARGEST_COUNT
        return "" if right else f"a whole number of at most {LARGEST_COUNT:,}"
    if not isinstance(value, Integral) and not math.isfinite(number):
        return "a finite number"
    if not -LARGEST_NUMBER <= number <= LARGEST_NUMBER:
        return f"a number of at most {LARGEST_NUMBER:g}"
    return "0, or a number further from it" if 0 < abs(number) < 1 / LARGEST_NUMBER else ""


def _quoted(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than a few thousand digits.
        return "a number of thousands of digits"
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}…"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
