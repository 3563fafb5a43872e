"""Damage is never read as data: a flipped bit, a cut byte or a lost file is said by name."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.repair import repair_run
from attnscope.trajectory import DamagedFile, RunFolder, open_run
from attnscope.trajectory.check import check_run
from attnscope.trajectory.manifest import update_manifest
from toy_study import Bowl

STUDY = Bowl().but(seeds=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "run"
    attnscope.write_report(attnscope.run(STUDY, out, workers=1))
    return out


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def damage(path: Path, how: str, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif how == "cut":
        del data[chance.randrange(len(data)) :]
    if how == "delete":
        path.unlink()
    else:
        path.write_bytes(data)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def same(one: xr.DataTree, other: xr.DataTree) -> bool:
    groups = set(other.children)
    return set(one.children) == groups and all(
        one[name].to_dataset().identical(other[name].to_dataset()) for name in groups
    )


@pytest.mark.parametrize("how", ["flip", "cut", "delete"])
def test_no_damage_passes_for_data(run: Path, how: str) -> None:
    chance = random.Random(how)
    whole = open_run(run)
    for path in files(run):
        kept = path.read_bytes()
        damage(path, how, chance)
        if how == "delete" and path.name == "run.json":
            with pytest.raises(AttnscopeError, match="is not a run"):
                check_run(run)
        else:
            health = check_run(run)
            assert path in [each.path for each in health.damage], f"{path} passes for whole"
        try:
            tree = open_run(run)
        except AttnscopeError:
            pass
        else:
            # What is not of the trajectory does no harm to it.
            assert same(tree, whole), path
        path.write_bytes(kept)


def exchange(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    assert first != second
    one.write_bytes(second)
    other.write_bytes(first)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("trajectory.zarr/observables/x/c/0/0/0", "trajectory.zarr/observables/x/c/1/0/0"),
        ("trajectory.zarr/theory/x/c/0/0/0", "trajectory.zarr/observables/x/c/1/0/0"),
        ("trajectory.zarr/theory/x/zarr.json", "trajectory.zarr/observables/x/zarr.json"),
        ("trajectory.zarr/data/start/zarr.json", "trajectory.zarr/observables/time/zarr.json"),
        ("runs/0000.json", "runs/0001.json"),
        ("runs/0000.json", "trajectory.zarr/params/zarr.json"),
    ],
)
def test_files_that_are_whole_and_in_the_place_of_another_are_seen(
    run: Path, one: str, other: str
) -> None:
    exchange(run / one, run / other)
    damaged = {str(each.path.relative_to(run)) for each in check_run(run).damage}
    assert damaged & {one, other}
    with pytest.raises(DamagedFile):
        open_run(run)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    from attnscope.engines import Checkpoint
    from attnscope.trajectory.checkpoint import load_checkpoint, save_checkpoint

    for run in range(2):
        values = {"step": run}
        save_checkpoint(tmp_path / f"{run:04d}.safetensors", Checkpoint({}, values))
    exchange(tmp_path / "0000.safetensors", tmp_path / "0001.safetensors")
    with pytest.raises(DamagedFile, match="checkpoint of another run"):
        load_checkpoint(tmp_path / "0000.safetensors")


def test_a_state_that_is_gone_is_missed(run: Path) -> None:
    (run / "runs/0001.json").unlink()
    with pytest.raises(DamagedFile, match=r"runs/0001\.json' is gone"):
        open_run(run)


def test_theory_that_was_being_written_is_not_there_yet(run: Path, made: Path) -> None:
    """As a kill between its metadata and their digests leaves it."""
    folder = RunFolder(run)
    kept = [name for name in folder.manifest()["arrays"] if not name.startswith("theory/")]
    update_manifest(folder, arrays=kept, theory=False)
    about = run / "trajectory.zarr/theory/zarr.json"
    about.write_text('{"zarr_format": 3, "node_type": "group"}')
    assert "theory" not in open_run(run).children
    tree = attnscope.run(STUDY, run, workers=1)
    assert tree["theory"].to_dataset().identical(open_run(made)["theory"].to_dataset())


def test_one_repair_is_enough_to_go_on(run: Path, made: Path) -> None:
    damage(run / "trajectory.zarr/observables/x/c/1/0/0", "cut", random.Random(0))
    damage(run / "trajectory.zarr/theory/x/c/0/0/0", "cut", random.Random(0))
    repair_run(run)
    tree, whole = attnscope.run(STUDY, run, workers=1), open_run(made)
    for group in ("observables", "theory", "data"):
        assert tree[group].to_dataset().identical(whole[group].to_dataset())


def test_the_damaged_file_is_named_and_the_rest_opens(run: Path) -> None:
    chunk = run / "trajectory.zarr/observables/x/c/1/0/0"
    data = bytearray(chunk.read_bytes())
    data[7] ^= 16
    chunk.write_bytes(data)
    with pytest.raises(DamagedFile, match=r"observables/x/c/1/0/0' is damaged .*checksum.*check"):
        open_run(run)
    tree = open_run(run, allow_damaged=True)
    assert "observables/x/c/1/0/0" in tree.attrs["damaged"][0]
    assert tree.attrs["status"].startswith("damaged: 1 file")
    assert np.isnan(tree["observables/x"][1]).all()
    assert not np.isnan(tree["observables/x"][0]).any()


def test_a_variable_that_is_gone_is_missed(run: Path) -> None:
    shutil.rmtree(run / "trajectory.zarr/observables/loss")
    with pytest.raises(DamagedFile, match=r"observables/loss/zarr\.json' is gone"):
        open_run(run)
    assert "loss" not in open_run(run, allow_damaged=True)["observables"]


def test_theory_and_report_are_rebuilt(run: Path, made: Path) -> None:
    chunk = next(p for p in files(run / "trajectory.zarr/theory") if p.name != "zarr.json")
    chunk.unlink()
    (run / "report.html").unlink()
    (run / "findings.json").write_text("[]")
    assert {each.kind for each in check_run(run).damage} == {"theory", "report"}
    assert repair_run(run) == [
        "laid theory over the readings again",
        "decided the claims and wrote the report again",
    ]
    assert check_run(run).whole
    assert same(open_run(run), open_run(made))
    assert (run / "findings.json").read_bytes() == (made / "findings.json").read_bytes()


def test_a_damaged_run_is_run_again(run: Path, made: Path) -> None:
    damage(run / "trajectory.zarr/observables/x/c/1/0/0", "cut", random.Random(0))
    assert "back to its beginning" in repair_run(run)[0]
    assert open_run(run).attrs["status"] == "3 of 4 runs are complete"
    attnscope.run(STUDY, run, workers=1, resume=True)
    ours, theirs = open_run(run), open_run(made)
    for group in ("observables", "theory", "data"):
        assert ours[group].to_dataset().identical(theirs[group].to_dataset())


def test_what_cannot_be_rebuilt_is_said(run: Path) -> None:
    (run / "trajectory.zarr/observables/time/c/0").unlink()
    with pytest.raises(AttnscopeError, match=r"cannot be made up.*--again"):
        repair_run(run)
    (run / "run.json").write_text("{}")
    with pytest.raises(AttnscopeError, match="cannot be rebuilt"):
        repair_run(run)


def test_nothing_is_written_by_a_reader(run: Path) -> None:
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files(run)}
    open_run(run)
    check_run(run)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files(run)} == before


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"format": 2' + ', "a": [' * 5000, "1" * 5000, "null", '"x"']
)
def test_a_manifest_of_any_kind_is_a_sentence(run: Path, content: str) -> None:
    (run / "run.json").write_text(content)
    with pytest.raises(AttnscopeError, match=r"run\.json"):
        open_run(run)


def test_a_pipe_in_the_place_of_a_file_stops_nobody(run: Path) -> None:
    import os

    for name in ("run.json", "runs/0000.json", "trajectory.zarr/observables/loss/zarr.json"):
        path = run / name
        kept = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(AttnscopeError, match="not an ordinary file"):
            open_run(run)
        path.unlink()
        path.write_bytes(kept)
    assert RunFolder(run).manifest()["study"] == "toy_study:Bowl"
