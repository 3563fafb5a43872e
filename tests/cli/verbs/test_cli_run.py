"""``attnscope run``: from flags to a spec, from a spec to claims and a report."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from attnscope.cli import main
from attnscope.cli.verbs.run import parse
from attnscope.studies.lu2021 import Query, Sen
from attnscope.trajectory import RunFolder, open_run

Capture = pytest.CaptureFixture[str]
STUDY = "lu2021.capacity"
SPEC = {"seeds": 2, "epochs": 200, "dictionary": 60, "train": 40, "test": 20, "m": 4, "points": 21}
SMALL = [word for name, value in SPEC.items() for word in (f"--{name}", str(value))]
HERE = ["--workers", "1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def refused(words: list[str], capsys: Capture) -> str:
    """Return the sentence of a command that must exit with code 2 and leave nothing behind."""
    code = main(words)
    captured = capsys.readouterr()
    assert code == 2
    assert list(Path.cwd().iterdir()) == []
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert captured.err.startswith("attnscope: ")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("words", [["run"], ["run", "--help"], ["run", "-h"]])
def test_help_without_a_study(words: list[str], capsys: Capture) -> None:
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "usage: attnscope run STUDY" in out
    assert "lu2021.sen" in out


def test_help_of_a_study_lists_every_field_with_its_value(capsys: Capture) -> None:
    assert main(["run", "lu2021.query", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in ("--query-variances", "--words-per-topic", "--resume", "--workers", "--scale"):
        assert flag in out
    assert "0.1 0.5 1.0 2.0" in out


def test_an_unknown_study(capsys: Capture) -> None:
    sentence = refused(["run", "lu2021.synergi"], capsys)
    assert "no study 'lu2021.synergi'. Did you mean 'lu2021.synergy'?" in sentence


def test_the_name_of_the_paper_can_be_left_out(capsys: Capture) -> None:
    assert main(["run", "capacity", "--help"]) == 0
    assert "usage: attnscope run lu2021.capacity " in capsys.readouterr().out
    said = refused(["run", "--scale", "quick", STUDY], capsys)
    assert "expected the study first, as in `attnscope run lu2021.sen --scale quick`" in said


def test_a_paper_lists_its_studies(capsys: Capture) -> None:
    assert main(["run", "lu2021"]) == 0
    out = capsys.readouterr().out
    assert "lu2021.sen " in out
    assert "snell2021" not in out
    said = refused(["run", "lu2021", "--scale", "quick"], capsys)
    assert "'lu2021' is a paper: expected one of its studies, lu2021.capacity, " in said


def test_an_own_study_that_cannot_be_imported(capsys: Capture) -> None:
    assert "there is no study 'mine:Study'" in refused(["run", "mine:Study"], capsys)


@pytest.mark.parametrize(("flag", "meant"), [("--epoch", "--epochs"), ("--sedes=3", "--seeds")])
def test_an_unknown_field(flag: str, meant: str, capsys: Capture) -> None:
    sentence = refused(["run", STUDY, flag, "3"], capsys)
    assert f"`attnscope run {STUDY}` has no flag '{flag.split('=')[0]}'." in sentence
    assert f"Did you mean '{meant}'?" in sentence


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--seeds", "three"], "--seeds three: expected a whole number."),
        (["--lr", "fast"], "--lr fast: expected a number."),
        (["--engine", "steam"], "--engine steam: expected flow or descent."),
        (["--scale", "huge"], "--scale huge: expected quick, desk or paper."),
        (["--scale=qick"], "--scale qick: expected quick, desk or paper. Did you mean 'quick'?"),
        (["--seeds"], "--seeds: expected a value. `attnscope run lu2021.capacity --help` lists"),
        (["leftover"], "`attnscope run lu2021.capacity`: 'leftover' is a word too many."),
        (["--figures", "gif"], "--figures gif: expected png, svg or pdf."),
    ],
)
def test_a_value_of_the_wrong_kind(flags: list[str], said: str, capsys: Capture) -> None:
    assert refused(["run", STUDY, *flags], capsys).startswith(f"attnscope: {said}")


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--m", "0"], "m = 0: expected 1 or more non-topic words in a sentence."),
        (
            ["--topics", "30", "--words-per-topic", "2", "--train", "40"],
            "make 60 topic words, but train = 40: expected at least one training sentence",
        ),
        (["--seeds", "0"], "seeds = 0: expected 1 or more."),
        (["--lr", "-0.1"], "lr = -0.1: expected a finite number above 0 or None."),
        (["--workers", "0"], "workers = 0: expected 1 or more."),
        (["--out", "."], "expected the name of a folder of its own"),
    ],
)
def test_a_value_out_of_range(flags: list[str], expected: str, capsys: Capture) -> None:
    assert expected in refused(["run", STUDY, *flags], capsys)


def test_scale_sets_the_defaults_and_flags_win() -> None:
    options, study = parse(Sen, ["--scale", "quick", "--seeds", "7"])
    assert study == Sen(**{**Sen.quick, "seeds": 7})
    assert options.scale == "quick"
    _, study = parse(Query, ["--query_variances", "0.2", "3", "--correct"])
    assert study == Query(query_variances=(0.2, 3.0), correct=True)


def test_a_run_prints_its_claims_and_where_its_report_lies(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "run [1]"
    assert main(["run", STUDY, *SMALL, *HERE, "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "Topic words end up with a larger score under Attn-FC than under Attn-TC" in text
    assert "claims" in text
    assert text.splitlines()[-1] == f"report: {out / 'report.html'}"
    assert (out / "report.html").exists()
    findings = json.loads((out / "findings.json").read_text())
    assert len(findings) == 6
    command = RunFolder(out).manifest()["command"]
    assert command.startswith(f"attnscope run {STUDY} --seeds 2")
    assert command.endswith(f"--out '{out}'")


def test_quiet_and_strict(tmp_path: Path, capsys: Capture) -> None:
    words = ["run", STUDY, *SMALL, *HERE, "--no-report", "--out", "here", "--quiet"]
    assert main([*words, "--strict"]) == 1  # At this size some claims fail.
    assert capsys.readouterr() == ("run: here\n", "")
    assert main(words) == 0


def test_without_a_report_the_claims_are_still_decided(tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", STUDY, *SMALL, *HERE, "--no-report"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("run: runs/lu2021.capacity-")
    folder = tmp_path / last.removeprefix("run: ")
    assert open_run(folder).attrs["status"] == "finished: all 6 runs are complete"
    assert (folder / "findings.json").exists()
    assert not (folder / "report.html").exists()
    assert not (folder / "figures").exists()


def test_resuming_another_spec(tmp_path: Path, capsys: Capture) -> None:
    words = ["run", STUDY, *SMALL, *HERE, "--no-report", "--out", "here"]
    assert main(words) == 0
    other = ["5" if before == "--m" else word for before, word in pairwise(["", *words])]
    assert main([*other, "--resume"]) == 2
    assert "m = 4 there, 5 here" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0


def test_a_folder_that_is_not_a_run(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    assert main(["run", STUDY, *SMALL, *HERE, "--out", "thesis"]) == 2
    assert "attnscope: 'thesis' exists and is not a run" in capsys.readouterr().err
    assert (tmp_path / "thesis" / "chapter").read_text() == "years of work"
