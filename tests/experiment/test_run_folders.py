"""A run's folder is replaced, resumed or left alone, and never half of it."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError, DiskFullError
from attnscope.experiment import crew
from attnscope.studies.lu2021 import Sen
from attnscope.trajectory import RunFolder, open_run
from toy_study import Bowl


def listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_that_is_not_a_run_is_left_alone(tmp_path: Path, resume: bool) -> None:
    theirs = tmp_path / "thesis"
    theirs.mkdir()
    (theirs / "chapter1.tex").write_text("years of work")
    before = listing(tmp_path)
    with pytest.raises(AttnscopeError, match=r"thesis' exists and is not a run.*expected an empty"):
        attnscope.run(Bowl(), theirs, workers=1, resume=resume)
    assert listing(tmp_path) == before
    assert os.listdir(tmp_path) == ["thesis"]


def test_a_file_in_the_way_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AttnscopeError, match="exists and is not a run"):
        attnscope.run(Bowl(), tmp_path / "file", workers=1)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_place_that_cannot_be_written_to_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(AttnscopeError, match=r"cannot be made \(Not a directory\)"):
        attnscope.run(Bowl(), tmp_path / "file" / "run", workers=1)


@pytest.mark.parametrize("out", [".", "..", "/", ""])
def test_a_run_needs_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(AttnscopeError, match="expected the name of a folder of its own"):
        attnscope.run(Bowl(), out, workers=1)
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    assert open_run(tmp_path / "run").attrs["study"] == "toy_study:Bowl"


def test_the_same_spec_again_finds_the_run(tmp_path: Path) -> None:
    study = Bowl().but(seeds=1)
    first = attnscope.run(study, tmp_path / "run", workers=1)
    (tmp_path / "run" / "notes.txt").write_text("mine")
    before = listing(tmp_path / "run" / "trajectory.zarr")
    assert attnscope.run(study, tmp_path / "run", workers=1).identical(first)
    assert listing(tmp_path / "run" / "trajectory.zarr") == before
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_another_spec_is_left_alone(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=2), tmp_path / "run", workers=1)
    before = listing(tmp_path)
    with pytest.raises(AttnscopeError, match=r"another spec.*--again.*--overwrite"):
        attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    assert listing(tmp_path) == before


def test_again_makes_a_new_run_beside_it(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    before = listing(tmp_path / "run")
    for name in ("run-2", "run-3"):
        tree = attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1, again=True)
        assert tree.attrs["path"] == str(tmp_path / name)
    assert listing(tmp_path / "run") == before


def test_overwrite_replaces_a_run(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=2), tmp_path / "run", workers=1)
    attnscope.write_report(open_run(tmp_path / "run"))
    study = Bowl().but(seeds=1, start=(5.0,))
    tree = attnscope.run(study, tmp_path / "run", workers=1, overwrite=True)
    assert tree["observables/x"].shape == (2, 31, 1)
    assert not (tmp_path / "run" / "report.html").exists()
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("name", ["notes.txt", "figures/mine.png", ".git/HEAD", "runs/0000.txt"])
def test_overwrite_touches_nothing_else(tmp_path: Path, name: str) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    attnscope.write_report(open_run(tmp_path / "run"))
    (tmp_path / "run" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "run" / name).write_text("years of work")
    before = listing(tmp_path)
    with pytest.raises(AttnscopeError, match=rf"holds '{name}'.*Nothing was touched"):
        attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1, overwrite=True)
    assert listing(tmp_path) == before


def test_overwrite_leaves_a_report_that_somebody_changed(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    report = attnscope.write_report(open_run(tmp_path / "run"))
    report.write_text(report.read_text() + "<!-- my remarks -->")
    with pytest.raises(AttnscopeError, match=r"holds 'report\.html', which .* somebody changed"):
        attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1, overwrite=True)
    assert "my remarks" in report.read_text()


@pytest.mark.parametrize("manifest", ["{}", '{"format": 1}', "[]", '{"name": "my experiment"}'])
def test_a_file_called_run_json_does_not_make_a_run(tmp_path: Path, manifest: str) -> None:
    mine = tmp_path / "mine"
    (mine / ".git").mkdir(parents=True)
    for name, text in {"run.json": manifest, "thesis.tex": "x", ".git/HEAD": "y"}.items():
        (mine / name).write_text(text)
    before = listing(tmp_path)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(AttnscopeError, match=r"is not a manifest of a run"):
            attnscope.run(Bowl(), mine, workers=1, **options)
        assert listing(tmp_path) == before


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with pytest.raises(AttnscopeError, match="is a link: expected a folder"):
        attnscope.run(Bowl(), tmp_path / "link", workers=1)


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="expected a name of at most 200 bytes"):
        attnscope.run(Bowl(), tmp_path / ("x" * 300), workers=1)


def test_what_killed_processes_left_is_cleared(tmp_path: Path) -> None:
    for left in (".run.0123456789abcdef.attnscope", ".other.0123456789abcdef.attnscope"):
        (tmp_path / left / "trajectory.zarr").mkdir(parents=True)
    theirs = [".run.0123456789abcde.attnscope", ".run.attnscope", ".run.4711"]
    for name in theirs:
        (tmp_path / name).mkdir()
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    assert sorted(os.listdir(tmp_path)) == sorted([*theirs, "run"])


def test_without_a_folder_the_spec_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for study in (Bowl().but(seeds=1), Bowl().but(seeds=1, epochs=200)):
        tree = attnscope.run(study, workers=1)
        assert tree.attrs["path"] == f"runs/{study.identity()}"
    assert len(os.listdir(tmp_path / "runs")) == 2


def test_resuming_another_spec_names_what_differs(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    before = listing(tmp_path)
    other = Bowl().but(seeds=2, start=(3.0,), lr=0.05)
    with pytest.raises(AttnscopeError) as caught:
        attnscope.run(other, tmp_path / "run", workers=1, resume=True)
    message = str(caught.value)
    assert "seeds = 1 there, 2 here" in message
    assert "lr = 0.1 there, 0.05 here" in message
    assert "start = [1.0, -2.0] there, [3.0] here" in message
    assert "epochs" not in message
    assert listing(tmp_path) == before


def test_resuming_another_study_says_so(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1)
    with pytest.raises(AttnscopeError, match=r"study = 'toy_study:Bowl' there, 'lu2021\.sen' here"):
        attnscope.run(Sen(), tmp_path / "run", workers=1, resume=True)


def test_resuming_a_finished_run_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = attnscope.run(Bowl(), tmp_path / "run", workers=1)
    before = listing(tmp_path / "run" / "runs")

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a complete run was done again")

    monkeypatch.setattr(crew, "execute", never)
    monkeypatch.setattr(crew, "Pool", never)
    for workers in (1, 2):
        second = attnscope.run(Bowl(), tmp_path / "run", workers=workers, resume=True)
        assert second.identical(first)
    assert listing(tmp_path / "run" / "runs") == before


def test_resume_without_a_run_begins_one(tmp_path: Path) -> None:
    tree = attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1, resume=True)
    assert tree.attrs["status"] == "finished: all 2 runs are complete"


@dataclasses.dataclass(frozen=True)
class Faulty(Bowl):
    """Cannot be built."""

    def build(self, case: str, seed: int) -> None:  # type: ignore[override]
        raise AttnscopeError("no such thing")


def test_a_spec_that_cannot_be_built_leaves_nothing_behind(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "old", workers=1)
    before = listing(tmp_path)
    for out in ("new", "deep/er", "old"):
        with pytest.raises(AttnscopeError, match="no such thing"):
            attnscope.run(Faulty(), tmp_path / out, workers=1, overwrite=True)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("writes", [0, 3, 8, 11])
def test_a_full_disk_while_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Every write ends in a move to its place; let those fail one after the other."""
    import errno

    expected = attnscope.run(Bowl(), tmp_path / "whole", workers=1)
    real, done = os.replace, []

    def move(*paths: object) -> None:
        if len(done) >= writes and begun.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        done.append(paths)
        real(*paths)  # type: ignore[arg-type]

    begun = threading.Event()
    execute = crew.execute

    def begin(*args: object, **options: object) -> object:
        if not begun.is_set():
            done.clear()
            begun.set()
        return execute(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", move)
        patch.setattr(crew, "execute", begin)
        with pytest.raises(DiskFullError, match=r"the disk is full.*--resume"):
            attnscope.run(Bowl(), tmp_path / "run", workers=1)
    half = open_run(tmp_path / "run")["observables/loss"].to_numpy()
    known = ~np.isnan(half)
    assert np.array_equal(half[known], expected["observables/loss"].to_numpy()[known])
    tree = attnscope.run(Bowl(), tmp_path / "run", workers=1, resume=True)
    assert np.array_equal(tree["observables/x"], expected["observables/x"])
    assert np.array_equal(tree["theory/x"], expected["theory/x"])


def test_the_manifest_says_how_it_was_made(tmp_path: Path) -> None:
    attnscope.run(Bowl().but(seeds=1), tmp_path / "run", workers=1, command="attnscope run x")
    manifest = RunFolder(tmp_path / "run").manifest()
    assert manifest["command"] == "attnscope run x"
    assert manifest["spec"] == Bowl().but(seeds=1).to_json()
    assert set(manifest["versions"]) == {"python", "torch", "numpy", "scipy", "xarray", "zarr"}
    assert manifest["status"] == "finished: all 2 runs are complete"
