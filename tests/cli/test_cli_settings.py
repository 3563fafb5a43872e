"""Settings of a study as flags: every kind that a field can have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from attnscope import Problem, Study
from attnscope.bounds import Count
from attnscope.cli.verbs.run import parse
from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class Kinds(Study):
    """A setting of every kind."""

    count: Count = 3
    share: float = 0.5
    perhaps: float | None = None
    word: str = "x"
    flag: bool = True
    kind: Literal["a", "b"] = "a"
    numbers: tuple[int, ...] = (1, 2)
    pair: tuple[str, str] = ("p", "q")

    def build(self, case: str, seed: int) -> Problem:
        raise NotImplementedError


@dataclass(frozen=True)
class Taken(Kinds):
    """A setting with the name of a flag."""

    out: int = 1


@dataclass(frozen=True)
class Unsayable(Kinds):
    """A setting that no word says."""

    table: Any = None


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("--count 4 --share -1e-3", {"count": 4, "share": -1e-3}),
        ("--perhaps -.5 --word=--x", {"perhaps": -0.5, "word": "--x"}),
        ("--perhaps None", {}),
        ("--no-flag --kind b", {"flag": False, "kind": "b"}),
        ("--numbers 5 6 -7 --pair u v", {"numbers": (5, 6, -7), "pair": ("u", "v")}),
        ("--numbers", {"numbers": ()}),
    ],
)
def test_kinds(words: str, changed: dict[str, Any]) -> None:
    assert parse(Kinds, words.split())[1] == Kinds(**changed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--numbers 1 x", "--numbers x: expected a whole number."),
        ("--pair one", "--pair: expected 2 values."),
        ("--kind c", "--kind c: expected a or b."),
        ("--count 0", "count = 0: expected 1 or more."),
    ],
)
def test_values_that_are_none(words: str, said: str) -> None:
    with pytest.raises(AttnscopeError) as caught:
        parse(Kinds, words.split())
    assert str(caught.value).startswith(said)


def test_studies_that_cannot_be_run_from_the_command_line() -> None:
    with pytest.raises(AttnscopeError, match=r"a setting called 'out', and --out is a flag"):
        parse(Taken, [])
    with pytest.raises(AttnscopeError, match="which no word of a command line says"):
        parse(Unsayable, [])


def test_a_path(tmp_path: Path) -> None:
    options, _ = parse(Kinds, ["--out", str(tmp_path)])
    assert options.out == str(tmp_path)
