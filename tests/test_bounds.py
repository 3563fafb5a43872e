"""Bounds that are declared in annotations, and sentences for what lies outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import pytest

from attnscope.bounds import Bounds, Count, Fraction, Natural, Positive, Several, check_fields
from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class Spec:
    words: Count = 3
    pairs: Several = 2
    shift: Natural = 0
    rate: Positive = 0.1
    share: Fraction = 0.5
    dropout: Annotated[float, Bounds(0, 1, open_high=True)] = 0.0
    kind: Literal["a", "b", "c"] = "a"
    rates: tuple[Positive, ...] = (1.0,)
    most: Count | None = None
    loud: bool = False
    name: str = ""

    about: ClassVar[int] = 7

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Larger(Spec):
    words: int = 30


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("words", 0, "words = 0: expected 1 or more."),
        ("words", 2.5, "words = 2.5: expected a whole number."),
        ("words", "3", "words = '3': expected a whole number."),
        ("words", True, "words = True: expected a whole number."),
        ("pairs", 1, "pairs = 1: expected 2 or more."),
        ("shift", -1, "shift = -1: expected 0 or more."),
        ("rate", 0.0, "rate = 0.0: expected a finite number above 0."),
        ("rate", float("nan"), "rate = nan: expected a finite number above 0."),
        ("rate", float("inf"), "rate = inf: expected a finite number above 0."),
        ("share", 1.1, "share = 1.1: expected a number from 0 to 1."),
        ("dropout", 1.0, "dropout = 1.0: expected a number from 0 to below 1."),
        ("kind", "d", "kind = 'd': expected 'a', 'b' or 'c'."),
        ("rates", (1.0, -1.0), r"rates = \(1.0, -1.0\): expected each to be a finite number"),
        ("rates", 1.0, "rates = 1.0: expected several values."),
        ("most", 0, "most = 0: expected 1 or more or None."),
        ("loud", 1, "loud = 1: expected True or False."),
        ("name", 3, "name = 3: expected a text."),
    ],
)
def test_what_lies_outside_is_quoted(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        Spec(**{field: value})


def test_what_lies_within_passes() -> None:
    Spec(words=1, pairs=2, rate=1, share=1, dropout=0.999, most=None, rates=())
    Spec(most=4)


def test_another_default_keeps_the_bounds() -> None:
    assert Larger().words == 30
    with pytest.raises(AttnscopeError, match="words = 0: expected 1 or more"):
        Larger(words=0)
