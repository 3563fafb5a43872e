"""Flags: each once, spelled out; limits as flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.cli import main
from attnscope.cli.arguments import refuse_repeated
from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS, RUNS

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for limit in (ROWS, BYTES, RUNS):
        monkeypatch.setenv(limit.variable, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run lu2021.sen --scale quick --scale bogus", "'--scale quick' and '--scale bogus' say"),
        ("run lu2021.sen --seeds=2 --seeds 3", "'--seeds=2' and '--seeds 3' say"),
        ("run lu2021.sen --report --no-report", "'--report' and '--no-report' say"),
        ("run lu2021.sen --max_rows 3 --max-rows 4", "'--max-rows 3' and '--max-rows 4' say"),
        ("lab --port 1 --port 2", "'--port 1' and '--port 2' say"),
        ("claims --runs a --runs=b", "'--runs a' and '--runs=b' say"),
        ("data sst2 --data-dir a --data-dir b", "'--data-dir a' and '--data-dir b' say"),
    ],
)
def test_a_flag_that_is_given_twice(words: str, said: str, capsys: Capture) -> None:
    assert main(words.split()) == 2
    assert f"attnscope: {said} the same thing twice: expected it once." in capsys.readouterr().err


def test_what_comes_after_the_last_flag_is_no_flag() -> None:
    refuse_repeated(["--a", "1", "--", "--a"], {"--a": "a"})
    with pytest.raises(AttnscopeError, match="'--a' and '--a 1' say"):
        refuse_repeated(["--a", "--a", "1"], {"--a": "a"})


def test_abbreviations_are_no_flags(capsys: Capture) -> None:
    assert main(["claims", "--run", "x"]) == 2
    said = "`attnscope claims` has no flag '--run'. Did you mean '--runs'?"
    assert said in capsys.readouterr().err


def test_a_value_that_is_the_end_of_flags(capsys: Capture) -> None:
    assert main(["data", "sst2", "--sheet=--"]) == 2
    assert "'--sheet=--': expected a value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run lu2021.sen --seeds 1000000000", "has 4,000,000,000 runs: expected at most 10,000"),
        ("run lu2021.sen --max-runs 3", "has 20 runs: expected at most 3 runs"),
        ("run snell2021.multihead --candidates 100000000", "runs: expected at most 10,000"),
        ("run lu2021.sen --max-rows 0", "--max-rows 0: expected a whole number of 1 or more"),
        ("topics x --max-bytes 1e9", "--max-bytes 1e9: expected a whole number of 1 or more"),
        ("data check sst2 --max-rows -1", "--max-rows"),
        ("run lu2021.sen --dim 0", "dim = 0: expected 1 or more"),
        ("run lu2021.sen --variance -1", "variance = -1.0: expected a finite number above 0"),
    ],
)
def test_limits_as_flags(words: str, said: str, capsys: Capture) -> None:
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err


def test_more_is_allowed_by_a_flag(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "c.txt").write_text("a few words here\n" * 30)
    assert main(["topics", "c.txt", "--max-rows", "20"]) == 2
    assert "'c.txt' has more than 20 rows: expected at most 20 rows" in capsys.readouterr().err
    main(["topics", "c.txt", "--max-rows", "40", "--topics", "31"])
    assert "has 30 documents, fewer than the 31 topics" in capsys.readouterr().err
