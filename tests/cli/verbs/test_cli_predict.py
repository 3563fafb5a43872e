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


def test_gold_alignments_and_an_update_are_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [[(7 * n + i) % 11 for i in range(5)] for n in range(150)]
    for side in ("s", "t"):
        lines = "".join(" ".join(f"{side}{i}" for i in row) + "\n" for row in rows)
        (tmp_path / f"a.{side}").write_text(lines)
    (tmp_path / "links").write_text("0-0 1-1 2-2 3-3 4?4\n" * 20)
    assert main(["predict", "a.s:a.t", "--gold", "links"]) == 0
    out = capsys.readouterr().out
    assert "Alignment error rate" in out
    assert "80 sure and 20 possible links" in out
    assert main(["predict", "a.s", "--batch", "8", "--context", "128"]) == 0
    assert "With 8 sequences of 128 tokens an update" in capsys.readouterr().out
    assert main(["predict", mine(tmp_path), "--gold", "links"]) == 2
    assert "--gold links with" in capsys.readouterr().err
    assert main(["predict", "a.s:a.t", "--gold", "gone"]) == 2
    assert "--gold gone: expected files that exist" in capsys.readouterr().err
