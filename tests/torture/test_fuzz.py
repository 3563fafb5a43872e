"""A few hundred cases of every fuzzer; ``make torture`` tries tens of thousands."""

from __future__ import annotations

import random

import pytest

from attnscope.errors import AttnscopeError

from . import fuzz_cli, fuzz_data
from .fuzzing import fuzz, mutated


def test_damaged_data_files() -> None:
    tally = fuzz_data.run(range(400), seed=11)
    assert tally.findings == []
    assert tally.cases == 400
    assert tally.sentences > 100
    assert tally.results > 50


def test_strange_specs_and_command_lines() -> None:
    tally = fuzz_cli.run(range(100), seed=11)
    assert tally.findings == []
    assert tally.cases == 100


def test_strange_environments() -> None:
    tally = fuzz_cli.environments(range(4), seed=11)
    assert tally.findings == []


def test_a_case_is_made_from_its_number_alone() -> None:
    data = b"some bytes, 1 2 3" * 9
    assert mutated(data, random.Random("1 7")) == mutated(data, random.Random("1 7"))
    assert len({mutated(data, random.Random(f"1 {number}")) for number in range(50)}) > 30


def test_what_counts_as_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    def case(rng: random.Random) -> tuple[str, object]:
        def sentence() -> None:
            raise AttnscopeError("a sentence")

        def bug() -> None:
            raise KeyError("x")

        return rng.choice((("result", int), ("sentence", sentence), ("bug", bug)))

    tally = fuzz(case, range(60), seed=1)  # type: ignore[arg-type]
    assert tally.results == tally.kinds["result"] > 0
    assert tally.sentences == tally.kinds["sentence"] > 0
    assert len(tally.findings) == tally.kinds["bug"] > 0
    assert "(bug): KeyError: 'x' at test_fuzz.py:" in tally.findings[0]
