"""Real processes, really killed: what was written is kept, and going on changes no bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.results import command_line
from attnscope.studies.lu2021 import Sen
from attnscope.trajectory import RunFolder, open_run

pytestmark = [
    pytest.mark.xdist_group("kill"),
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc"
    ),
]

STUDY = Sen(
    engine="descent", epochs=4000, seeds=1, dictionary=60, train=40, test=20, m=4, points=301
)
OFTEN = """
from attnscope.trajectory import ZarrSink, pace
pace.SHARE = 0
ZarrSink.__init__.__kwdefaults__["every"] = 0.3
"""
"""What every process does first, so that a checkpoint comes long before the end."""
PATIENCE = 90
"""Seconds until a wait is given up; nothing here needs nearly as long."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    """Return the run that nobody disturbs."""
    return attnscope.run(STUDY, tmp_path_factory.mktemp("whole") / "run", workers=1)


@contextmanager
def command(out: Path, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """Start ``attnscope run`` in a process group of its own, and leave nothing of it behind."""
    words = [*command_line(STUDY).split()[1:], "--workers", "2", "--no-report", "--out", str(out)]
    (out.parent / "sitecustomize.py").write_text(OFTEN)
    process = subprocess.Popen(
        [sys.executable, "-m", "attnscope.cli", *words, *flags],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(out.parent)},
    )
    try:
        yield process
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def members(group: int) -> list[int]:
    """Return the living processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, member_of = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(member_of) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def assert_prefix(out: Path, whole: xr.DataTree) -> int:
    """Check that what is there is right; return how many points of the curves are there."""
    tree = open_run(out)
    for name in ("loss", "score", "norm"):
        ours, theirs = (t[f"observables/{name}"].to_numpy() for t in (tree, whole))
        known = ~np.isnan(ours)
        assert np.array_equal(ours[known], theirs[known])
    loss = tree["observables/loss"].to_numpy()
    for row in ~np.isnan(loss):
        assert row[: row.sum()].all(), "a gap"
    return int((~np.isnan(loss)).sum())


def assert_same(ours: xr.DataTree, theirs: xr.DataTree) -> None:
    assert set(ours["observables"].data_vars) == set(theirs["observables"].data_vars)
    for group in ("observables", "theory"):
        for name in theirs[group].data_vars:
            a, b = ours[group][name].to_numpy(), theirs[group][name].to_numpy()
            assert np.array_equal(a, b, equal_nan=True), f"{group}/{name}"
    for name in ("steps", "loss", "outcome"):
        assert np.array_equal(ours[f"stats/{name}"], theirs[f"stats/{name}"])


def chunks(out: Path) -> int:
    return len(list(out.glob("trajectory.zarr/observables/loss/c/*/*")))


def test_ctrl_c_keeps_everything_and_says_how_to_go_on(tmp_path: Path, whole: xr.DataTree) -> None:
    out = tmp_path / "run"
    with command(out) as process:
        wait_for(lambda: chunks(out), process)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert members(process.pid) == []
    assert "attnscope: interrupted: " in stderr
    assert "of 4 runs are complete" in stderr
    assert "Go on with the same command and --resume." in stderr
    assert "Traceback" not in stderr + stdout
    before = assert_prefix(out, whole)
    assert 0 < before < whole["observables/loss"].size
    # Ctrl-C lets every run take its checkpoint, so nothing that was done is done again.
    folder = RunFolder(out)
    states = [folder.state(i) for i in range(4)]
    halted = [i for i, state in enumerate(states) if state.get("outcome") == "interrupted"]
    assert all(folder.checkpoint_path(i).exists() for i in halted)
    assert_same(attnscope.run(STUDY, out, workers=1, resume=True), whole)


def test_a_killed_run_goes_on_bit_for_bit(tmp_path: Path, whole: xr.DataTree) -> None:
    out = tmp_path / "run"
    folder = RunFolder(out)

    def kept() -> bool:
        return any(
            folder.state(i).get("outcome") == "finished" or folder.checkpoint_path(i).exists()
            for i in range(4)
        )

    with command(out) as process:
        wait_for(kept, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)
    before = recorded(folder)
    first = assert_prefix(out, whole)
    assert 0 < first < whole["observables/loss"].size

    # Again, and this time only the parent dies: its workers must follow by themselves.
    with command(out, "--resume") as process:
        wait_for(lambda: len(members(process.pid)) == 3 and recorded(folder) > before, process)
        process.kill()
        process.wait(PATIENCE)
        deadline = time.monotonic() + 15
        while members(process.pid):
            assert time.monotonic() < deadline, "a worker outlives the process that started it"
            time.sleep(0.05)
    second = assert_prefix(out, whole)
    assert second >= first
    assert_same(attnscope.run(STUDY, out, workers=1, resume=True), whole)


def recorded(folder: RunFolder) -> int:
    """Return how many points all runs together say they have recorded."""
    states = (folder.state(i) for i in range(len(STUDY.runs())))
    return sum(state.get("recorded", {}).get("step", 0) for state in states)
