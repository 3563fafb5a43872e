"""``attnscope check``: whole runs, damaged runs, and what is done about them."""

from __future__ import annotations

from pathlib import Path

import pytest

import attnscope
from attnscope.cli import main
from toy_study import Bowl


def test_check_says_what_is_wrong_and_repairs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("good", "bad"):
        attnscope.write_report(attnscope.run(Bowl().but(seeds=1), tmp_path / name, workers=1))
    chunk = tmp_path / "bad/trajectory.zarr/theory/x"
    for path in chunk.rglob("*"):
        if path.is_file() and path.name != "zarr.json":
            path.write_bytes(path.read_bytes()[:-1])
    words = ["check", str(tmp_path / "good"), str(tmp_path / "bad"), str(tmp_path / "none")]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert f"{tmp_path / 'good'}: whole" in out
    assert "damaged file" in out
    assert "trajectory.zarr/theory/x/c" in out
    assert "still good: all readings, data" in out
    assert "none' is not a run: no such folder" in out

    assert main(["check", str(tmp_path / "bad"), "--repair"]) == 0
    out = capsys.readouterr().out
    assert "laid theory over the readings again" in out
    assert f"{tmp_path / 'bad'}: whole" in out


def test_an_old_run_is_whole_as_far_as_one_can_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import tarfile

    archive = sorted(Path(__file__).parents[2].glob("old_runs/*.tar.xz"))[0]
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    run = next(tmp_path.glob("**/run.json")).parent
    assert main(["check", str(run)]) == 0
    assert "written by a version without checksums" in capsys.readouterr().out
