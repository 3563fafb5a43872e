"""``attnscope predict`` as a person calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.cli import main


def mine(folder: Path) -> str:
    path = folder / "mine.csv"
    rows = [
        f"{'good' if i % 2 else 'bad'},{'fine' if i % 2 else 'poor'} w{i % 7}" for i in range(90)
    ]
    path.write_text("label,text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def test_it_prints_a_page_and_writes_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["predict", mine(tmp_path), "--sentence", "a fine day"]) == 0
    out = capsys.readouterr().out
    assert "Single words suffice" in out
    assert "yours  a [[fine]] day" in out
    assert (tmp_path / "predictions" / "mine" / "report.html").exists()
    assert (tmp_path / "predictions" / "mine" / "tables" / "all-words.csv").exists()


def test_quiet_says_only_where_the_report_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", mine(tmp_path), "--out", str(tmp_path / "r"), "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == f"report: {tmp_path / 'r' / 'report.html'}"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "needs DATA"),
        (["nowhere.csv"], "'nowhere.csv' is neither a labelled set nor a path that exists"),
        (["sst2", "--calibration"], "--calibration with 'sst2': expected one of them"),
        (["x.csv", "--verify", "--without", "a"], "--verify with --without"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_calibration_prints_how_well_predictions_held(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--calibration"]) == 0
    assert "How well predictions have held" in capsys.readouterr().out
