"""Values of a field, read from text as that field's own kind: ``5,10,20``, ``5:80:log9``."""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.experiment.spec import Setting
from attnscope.limits import POINTS

_RANGE = re.compile(r"(?P<first>[^:]+):(?P<last>[^:]+):(?P<log>log)?(?P<count>\d+)")
RANGE = "FIRST:LAST:COUNT or FIRST:LAST:logCOUNT"


def spoken(value: Any) -> str:
    """Return a value as people write it; of a tuple of one, the one."""
    if isinstance(value, tuple | list):
        return "+".join(map(spoken, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def label(value: Any) -> Any:
    """Return a value as the label of a place: a number where it is one, else a text."""
    if isinstance(value, tuple | list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return spoken(value)
    return value


def is_geometric(values: Sequence[Any]) -> bool:
    """Return whether numbers spread so far that they belong on a logarithmic axis."""
    numbers = [label(value) for value in values]
    if len(numbers) < 3 or any(isinstance(n, str) or n <= 0 for n in numbers):
        return False
    ratios = np.diff(np.log(sorted(set(map(float, numbers)))))
    steps = np.diff(sorted(set(map(float, numbers))))
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def values_of(setting: Setting, text: str) -> tuple[tuple[tuple[Any, ...], ...], bool]:
    """Read values from text, and whether they are in constant ratio."""
    match = _RANGE.fullmatch(text)
    if match is None:
        if ":" in text and _numeric(setting.kind):
            raise AttnscopeError(f"{setting.name}={text}: expected {RANGE}, or values with commas.")
        values = [_read(setting, part) for part in text.split(",")]
        return tuple((value,) for value in dict.fromkeys(values)), is_geometric(values)
    first, last = (_number(setting, match[name]) for name in ("first", "last"))
    count, log = int(match["count"]), bool(match["log"])
    if count < 2 or (log and min(first, last) <= 0):
        wrong = "2 values or more" if count < 2 else "ends above 0 for a logarithmic range"
        raise AttnscopeError(f"{setting.name}={text}: expected {wrong}.")
    POINTS.check(count, f"{setting.name}={text} has {count:,} values")
    places = np.geomspace(first, last, count) if log else np.linspace(first, last, count)
    # Ends as they were typed, and no digits that nobody asked for.
    numbers = [first, *(float(f"{place:.6g}") for place in places[1:-1]), last]
    if is_whole(setting.kind):
        numbers = [round(number) for number in numbers]
    wrapped = [_wrapped(setting, number) for number in numbers]
    return tuple((value,) for value in dict.fromkeys(wrapped)), log


def _read(setting: Setting, text: str) -> Any:
    """Read one value as the field's own kind."""
    text = text.strip()
    if "+" in text and is_tuple(setting.kind):
        return tuple(_read(setting, part)[0] for part in text.split("+") if part)
    for kind in _kinds(setting.kind):
        if typing.get_origin(kind) is Literal:
            for option in typing.get_args(kind):
                if str(option) == text:
                    return option
        elif kind is types.NoneType and text.lower() == "none":
            return None
        elif kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        elif kind in (int, float):
            try:
                return _wrapped(setting, kind(text))
            except ValueError:
                continue
        elif kind is str:
            return _wrapped(setting, text)
    raise AttnscopeError(f"{setting.name}={text}: expected {_expected(setting)}.")


def _wrapped(setting: Setting, value: Any) -> Any:
    return (value,) if is_tuple(setting.kind) else value


def _number(setting: Setting, text: str) -> float:
    try:
        if not _numeric(setting.kind):
            raise ValueError
        number = float(text)
        if not math.isfinite(number):
            raise ValueError
    except ValueError:
        raise AttnscopeError(
            f"{setting.name}={text}:…: expected numbers as the ends of a range"
            + ("." if _numeric(setting.kind) else f", and {setting.name} is none.")
        ) from None
    return int(number) if is_whole(setting.kind) and number == int(number) else number


def _kinds(kind: Any) -> list[Any]:
    """Return the plain kinds that an annotation admits; of a tuple, those of an entry."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _kinds(parts[0])
    if origin in (typing.Union, types.UnionType):
        return [each for part in parts for each in _kinds(part)]
    if origin is tuple:
        return _kinds(parts[0])
    return [kind]


def is_tuple(kind: Any) -> bool:
    """Return whether a field holds several values."""
    return typing.get_origin(kind) is tuple


def _numeric(kind: Any) -> bool:
    return any(each in (int, float) for each in _kinds(kind))


def is_whole(kind: Any) -> bool:
    """Return whether a field holds whole numbers."""
    kinds = _kinds(kind)
    return int in kinds and float not in kinds


def _expected(setting: Setting) -> str:
    words = []
    for kind in _kinds(setting.kind):
        if typing.get_origin(kind) is Literal:
            words += [str(option) for option in typing.get_args(kind)]
        else:
            named = {int: "a whole number", float: "a number", bool: "true or false"}
            words.append(named.get(kind, "none" if kind is types.NoneType else "a text"))
    return " or ".join(words)
