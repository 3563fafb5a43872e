"""A disk that is really full: a sentence, nothing lost, and going on changes no bit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attnscope.cli import main
from attnscope.experiment import crew
from attnscope.trajectory import open_run

SPEC = {"seeds": 1, "epochs": 300, "dictionary": 60, "train": 40, "test": 20, "m": 4}
FLAGS = [word for name, value in SPEC.items() for word in (f"--{name}", str(value))]
COMMAND = ["run", "lu2021.capacity", *FLAGS, "--points", "151", "--workers", "1", "--no-report"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs Linux and root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine refuses to mount a tmpfs: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def used(place: Path) -> int:
    status = os.statvfs(place)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_what_was_written_stays_and_the_rest_follows(
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    share: float,
) -> None:
    out = small_disk / "run"
    flags = [*COMMAND, "--out", str(out)]
    sizes: list[int] = []
    execute = crew.execute

    def measure(*args: object, **options: object) -> object:
        sizes.append(used(small_disk))
        return execute(*args, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(crew, "execute", measure)
        assert main(flags) == 0
    expected = open_run(out)
    sizes.append(used(small_disk))
    shutil.rmtree(out)

    room = sizes[0] + share * (sizes[-1] - sizes[0])
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(int(free - room)))
    capsys.readouterr()
    assert main(flags) == 2
    message = capsys.readouterr().err
    assert message.startswith("attnscope: the disk is full: ")
    assert "run again with --resume" in message

    half = open_run(out)["observables/loss"].to_numpy()
    known = ~np.isnan(half)
    assert not known.all()
    assert np.array_equal(half[known], expected["observables/loss"].to_numpy()[known])

    ballast.unlink()
    assert main([*flags, "--resume"]) == 0
    tree = open_run(out)
    for group in ("observables", "theory", "data"):
        for name, array in expected[group].data_vars.items():
            assert np.array_equal(tree[group][name], array, equal_nan=array.dtype.kind == "f"), name
