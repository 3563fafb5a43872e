"""Experiments are found by name, by file and by entry point, and never by a stranger's word."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope import catalogue
from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.experiment import KNOWN
from attnscope.export import export
from attnscope.results import page_of

EXAMPLE = Path(__file__).parents[1] / "examples" / "one_score.py"
OLD = Path(__file__).parent / "old_runs"
STUDY = """
from dataclasses import dataclass
from attnscope import Study


@dataclass(frozen=True)
class {name}(Study):
    pass
"""


def test_the_minimal_study_runs_in_forty_lines(tmp_path: Path) -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    out = tmp_path / "run"
    words = ["run", str(EXAMPLE), "--seeds", "2", "--workers", "2", "--figures", "png"]
    assert main([*words, "--out", str(out)]) == 0
    found = json.loads((out / "findings.json").read_text())
    assert [(f["key"], f["verdict"], f["control_fails"]) for f in found] == [
        ("growth-m = 5", "holds", True),
        ("growth-m = 20", "holds", True),
    ]
    report = (out / "report.html").read_text()
    assert "<h1>OneScore</h1>" in report
    assert f"attnscope run {EXAMPLE} --seeds 2" in report
    assert "from one_score import OneScore" in report
    assert json.loads((out / "run.json").read_text())["study"] == "one_score.py:OneScore"
    assert sorted(path.name for path in (out / "figures").iterdir()) == [
        "grown-over-step.csv",
        "grown-over-step.png",
    ]
    assert (out / "tables" / "end.csv").exists()


def test_new_writes_the_minimal_study_with_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "mine.py"]) == 0
    assert "attnscope run mine.py" in capsys.readouterr().out
    written = (tmp_path / "mine.py").read_text().splitlines()
    bare = [line for line in written if not line.lstrip().startswith("#")]
    assert bare == EXAMPLE.read_text().splitlines()
    assert main(["new", "mine.py"]) == 2
    assert "'mine.py' exists" in capsys.readouterr().err
    assert main(["new", "mine"]) == 2
    assert "expected one such as mine.py" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_that_name", r"cannot be imported \(ModuleNotFoundError"),
        ("def broken(:", r"cannot be imported \(SyntaxError, line 1"),
        ("x = 1", "defines no study"),
        (
            STUDY.format(name="One") + STUDY.format(name="Two"),
            r"several studies \(One, Two\).*:One",
        ),
    ],
)
def test_files_without_a_study_get_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(AttnscopeError, match=rf"mine\.py' .*{said}|{said}"):
        catalogue.load(str(path))
    with pytest.raises(AttnscopeError, match=r"gone\.py' is not there"):
        catalogue.load(str(tmp_path / "gone.py"))


def test_one_of_several_studies_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "both.py"
    path.write_text(STUDY.format(name="One") + STUDY.format(name="Two"))
    assert catalogue.load(f"{path}:Two").__name__ == "Two"
    with pytest.raises(AttnscopeError, match="defines no 'Three'"):
        catalogue.load(f"{path}:Three")


def test_a_package_offers_studies_by_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_package.py").write_text('"""X."""\n' + STUDY.format(name="Theirs"))
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint("their.study", "their_package:Theirs", catalogue.GROUP),
        EntryPoint("their.slip", "their_package:gone", catalogue.GROUP),
    ]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: points)
    assert "their.study" in catalogue.names()
    assert catalogue.load("their.study").__name__ == "Theirs"
    with pytest.raises(AttnscopeError, match=r"'their\.slip' of an installed package cannot be"):
        catalogue.load("their.slip")


def test_a_notebook_runs_its_own_study_with_workers(tmp_path: Path) -> None:
    """A class of ``__main__`` without a guard goes to the workers by value."""
    script = tmp_path / "notebook.py"
    text = EXAMPLE.read_text() + (
        "\n\nimport attnscope\n"
        "run = attnscope.run(OneScore(seeds=2), 'run', workers=2)\n"
        "print([finding.verdict for finding in attnscope.findings(run)], run.attrs['study'])\n"
    )
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['holds', 'holds'] __main__:OneScore"


@pytest.mark.parametrize("named", ["runs.evil.payload:X", "gone_7:Study", "lu2021.gone"])
def test_a_run_whose_study_is_gone_can_still_be_read(
    tmp_path: Path, named: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = unpacked("sen", tmp_path)
    evil = tmp_path / "runs" / "evil"
    evil.mkdir(parents=True)
    (evil / "payload.py").write_text(f"open({str(tmp_path / 'was_here')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**manifest, "study": named}))
    tree = attnscope.open_run(folder)
    assert np.isfinite(tree["observables/score"]).all()
    with pytest.raises(AttnscopeError, match=f"the study '{named}' is not here, so its claims"):
        attnscope.findings(tree)
    assert main(["show", str(folder)]) == 0
    assert named in capsys.readouterr().out
    export(tree, "csv", tmp_path / "csv")
    assert not (tmp_path / "was_here").exists()


CHANGED_SINCE = {
    "snell2021.copying": {"known-under-uniform", "unknown-under-uniform", "knowledge-first"}
}
"""Claims that are not what they were in version 0.1.0, or were not there."""


def unpacked(name: str, into: Path) -> Path:
    """Unpack a run that version 0.1.0 wrote, before the renovation."""
    with tarfile.open(OLD / f"{name}.tar.xz") as archive:
        archive.extractall(into, filter="data")
    return into / name


@pytest.mark.parametrize(
    ("name", "study", "claims"),
    [("sen", "lu2021.sen", 16), ("copying", "snell2021.copying", 14), ("watched", "watched", 0)],
)
def test_runs_of_older_versions_open_show_and_report(
    tmp_path: Path, name: str, study: str, claims: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(name, tmp_path)
    tree = attnscope.open_run(folder)
    found = attnscope.findings(tree)
    assert catalogue.of_tree(tree).name() == study
    assert len(found) == claims
    kept = {each["key"]: each for each in json.loads((folder / "findings.json").read_text())}
    since = {each.key for each in found} ^ set(kept) | CHANGED_SINCE.get(study, set())
    assert since == CHANGED_SINCE.get(study, set())
    for ours in (each for each in found if each.key not in since):
        theirs = kept[ours.key]
        assert (ours.key, ours.sentence, ours.verdict) == (
            theirs["key"],
            theirs["sentence"],
            theirs["verdict"],
        )
        for value in ("ours", "low", "high"):
            was = np.nan if theirs[value] is None else theirs[value]
            np.testing.assert_allclose(getattr(ours, value), was, rtol=1e-12)
    page = page_of(tree)
    assert page.figures
    assert page.tables
    assert main(["show", str(folder)]) == 0
    assert "finished" in capsys.readouterr().out
    export(tree, "csv", tmp_path / "csv")
    assert list((tmp_path / "csv").rglob("*.csv")) or (tmp_path / "csv").is_file()


def test_studies_of_ones_own_are_known_by_their_class(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(STUDY.format(name="Own"))
    found = catalogue.load(str(path))
    assert KNOWN[found.name()] is found
