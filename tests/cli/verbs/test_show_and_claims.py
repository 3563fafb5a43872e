"""``attnscope show`` and ``attnscope claims``, over runs that are there and runs that are not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from attnscope.catalogue import names
from attnscope.cli import main
from attnscope.trajectory import FORMAT, RunFolder
from attnscope.trajectory.manifest import update_manifest

pytestmark = pytest.mark.xdist_group("show")  # one fixture for all

Capture = pytest.CaptureFixture[str]
SPEC = {"seeds": 2, "epochs": 100, "train": 40, "test": 20, "points": 11}
SMALL = [word for name, value in SPEC.items() for word in (f"--{name}", str(value))]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two runs."""
    folder = tmp_path_factory.mktemp("all")
    for study, more in (
        ("lu2021.capacity", ["--m", "4", "--dictionary", "60"]),
        ("lu2021.cnn", ["--dictionary", "12"]),
    ):
        out = folder / study
        words = ["run", study, *SMALL, *more, "--workers", "1", "--no-report", "--out", str(out)]
        assert main(words) == 0
    return folder


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_show_says_what_a_run_is(runs: Path, capsys: Capture) -> None:
    assert main(["show", str(runs / "lu2021.capacity")]) == 0
    out = capsys.readouterr().out
    assert "lu2021.capacity  finished: all 6 runs are complete" in out
    assert "made by: attnscope run lu2021.capacity --seeds 2" in out
    assert "seeds = 2, engine = flow" in out
    assert "observables/score" in out
    assert "run 6 × step 11 × word 8" in out
    assert "s_t of topic words" in out
    assert "theory/attention" in out
    assert "more score" in out or "larger score" in out


def test_show_works_on_a_run_that_has_hardly_begun(
    runs: Path, tmp_path: Path, capsys: Capture
) -> None:
    half = tmp_path / "half"
    shutil.copytree(runs / "lu2021.capacity", half)
    shutil.rmtree(half / "trajectory.zarr" / "theory")
    (half / "findings.json").unlink()
    folder = RunFolder(half)
    for run in range(len(folder.manifest()["runs"])):
        folder.write_state(run, {})
    arrays = [name for name in folder.manifest()["arrays"] if not name.startswith("theory/")]
    update_manifest(folder, status="not begun", theory=False, arrays=arrays)
    assert main(["show", str(half)]) == 0
    assert "0 of 6 runs are complete" in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "{", json.dumps({"format": FORMAT + 1})])
def test_show_on_what_is_not_a_run(tmp_path: Path, capsys: Capture, content: str | None) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    assert main(["show", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("attnscope: ")
    expected = {
        None: "is not a run: there is no run.json in it",
        "{": "is not a manifest of a run",
    }.get(content, f"in format {FORMAT + 1}; this version reads up to format {FORMAT}")
    assert expected in captured.err


def test_claims_over_a_folder_of_runs(runs: Path, capsys: Capture) -> None:
    assert main(["claims", "--runs", str(runs)]) == 0
    out = capsys.readouterr().out
    assert out.index("lu2021.capacity  (") < out.index("lu2021.cnn  (")
    kept = [json.loads(p.read_text()) for p in sorted(runs.glob("*/findings.json"))]
    total = sum(map(len, kept))
    holds = sum(f["verdict"] == "holds" for findings in kept for f in findings)
    passing = sum(
        not (f["control_fails"] or f["control_undecided"]) for findings in kept for f in findings
    )
    assert f"{holds} of {total} claims hold; {passing} controls pass" in out


def test_claims_of_one_paper(runs: Path, capsys: Capture) -> None:
    assert main(["claims", "lu2021", "--runs", str(runs)]) == 0
    assert "lu2021.cnn" in capsys.readouterr().out


def test_claims_of_an_unknown_paper(runs: Path, capsys: Capture) -> None:
    assert main(["claims", "lu2012", "--runs", str(runs)]) == 2
    assert capsys.readouterr().err == (
        "attnscope: there are no studies of 'lu2012'. Did you mean 'lu2021'? "
        f"Expected one of: {', '.join(sorted({name.split('.')[0] for name in names()}))}.\n"
    )


def test_claims_without_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["claims", "--runs", "."]) == 0
    assert "no run below '.' has decided a claim yet" in capsys.readouterr().out
    for words in ([], ["--runs", "nowhere"]):
        assert main(["claims", *words]) == 2
        name = words[-1] if words else "runs"
        assert f"there is no folder '{name}': expected" in capsys.readouterr().err


def test_strict_claims_and_claims_as_json(runs: Path, capsys: Capture) -> None:
    assert main(["claims", "--runs", str(runs), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["study"] for each in told] == ["lu2021.capacity", "lu2021.cnn"]
    found = [finding for each in told for finding in each["findings"]]
    wrong = any(
        f["verdict"] == "fails" or not (f["control_fails"] or f["control_undecided"]) for f in found
    )
    assert main(["claims", "--runs", str(runs), "--strict"]) == wrong


def test_show_as_json(runs: Path, capsys: Capture) -> None:
    assert main(["show", str(runs / "lu2021.cnn"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["spec"]["seeds"] == 2
    assert told["arrays"]["observables/loss"]["sizes"]["step"] == 11
    assert all(finding["sentence"] for finding in told["findings"])
    assert told["report"] is None


def test_what_is_piped_does_not_wrap(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delenv("COLUMNS")
    assert main(["claims", "--runs", str(runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    sentences = [line for line in lines if line[1:].startswith((" holds", " fails", " undecided"))]
    found = json.loads((runs / "lu2021.cnn" / "findings.json").read_text())
    assert all(any(f["sentence"] in line for line in sentences) for f in found)
    assert all(line == line.rstrip() for line in lines)


def test_claims_go_on_past_damaged_runs(runs: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(runs / "lu2021.cnn", tmp_path / "b")
    for name, manifest in (("a", "[" * 100_000), ("c", "{}"), ("d", None)):
        shutil.copytree(runs / "lu2021.cnn", tmp_path / name)
        if manifest is not None:
            (tmp_path / name / "run.json").write_text(manifest)
    kept = json.loads((tmp_path / "d" / "findings.json").read_text())
    kept[0]["verdict"] = "splendid"
    (tmp_path / "d" / "findings.json").write_text(json.dumps(kept))
    assert main(["claims", "--runs", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out.count("lu2021.cnn  (") == 1
    assert f"of {len(kept)} claims hold" in captured.out
    said = captured.err.splitlines()
    assert len(said) == 3
    for name, line in zip("acd", said, strict=True):
        assert line.startswith(f"attnscope: left out: '{tmp_path / name}")


@pytest.mark.parametrize("text", ["{", '[{"key": "x"}]', "3"])
def test_findings_that_cannot_be_read_are_a_sentence(
    runs: Path, tmp_path: Path, capsys: Capture, text: str
) -> None:
    shutil.copytree(runs / "lu2021.cnn", tmp_path / "run")
    (tmp_path / "run" / "findings.json").write_text(text)
    for words in (["claims", "--runs", str(tmp_path)], ["show", str(tmp_path / "run")]):
        assert main(words) == 2
        assert "findings.json' cannot be read: expected" in capsys.readouterr().err
