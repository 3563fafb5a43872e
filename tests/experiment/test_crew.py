"""Runs on real nodes of a real cluster, and a node that is really killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import attnscope
from attnscope.errors import AttnscopeError
from toy_study import Bowl, Relay

TESTS = str(Path(__file__).parents[1])
ALL = "finished: all 4 runs are complete"
pytestmark = pytest.mark.xdist_group("kill")


def python(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the tests, in a process of its own: Ray leaves traces in one."""
    pytest.importorskip("ray")
    return subprocess.run(
        [sys.executable, "-W", "ignore", *words],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": TESTS, **more},
    )


def test_a_node_that_is_killed_costs_no_run_and_no_bit() -> None:
    done = python("-m", "torture.nodes", "--kills", "1", "--epochs", "6000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 nodes killed, 0 of 8 runs lost, 0 of" in done.stdout


def test_a_live_cluster_does_what_this_computer_does_and_the_rest_is_sentences() -> None:
    done = python("-m", "torture.head")
    if "no head" in done.stderr or "failure from server" in done.stdout:
        done = python("-m", "torture.head")  # Ray itself did not start; nothing of ours was tried.
    assert done.returncode == 0, done.stdout + done.stderr
    study, deadly, sweep, room, auto, *versions = done.stdout.splitlines()
    assert (study, auto) == ("study same", "auto same")
    assert re.match(
        r"deadly: 2 of 6 points could not be done; the first, much = 3, epochs = [56]0: it took "
        r"its process with it \(exit code -9: the system ended it, as it does when memory runs out",
        deadly,
    )
    assert sweep == f"sweep same {['failed'] * 2 + ['finished'] * 4}"
    assert "takes 1 processors and 100000 GB of memory, and no node of the cluster has" in room
    for on, said in zip(("auto", "ray://127.0.0.1:"), versions, strict=True):
        assert said.startswith(f"version: on = '{on}")
        assert "the cluster there has other versions (Version mismatch: " in said


def test_a_sweep_whose_node_is_killed_loses_no_point_and_no_bit() -> None:
    done = python("-m", "torture.nodes", "--sweep", "--kills", "1", "--epochs", "4000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 nodes killed, 0 of 4 points lost, 0 of" in done.stdout


STOPPED = """
import os, signal, sys
import attnscope, ray
from pathlib import Path
from attnscope.experiment import Interrupted
from torture.nodes import files
from toy_study import Relay

place = Path(sys.argv[1])
study = Relay().but(engine="descent", epochs=4000, points=1001)
attnscope.run(study, place / "here")

def interrupt(run, fraction):
    if run == 1 and fraction > 0:  # a run of the second round, which needs the first
        os.kill(os.getpid(), signal.SIGINT)

try:
    attnscope.run(study, place / "far", on="ray", listener=interrupt)
except Interrupted as error:
    print(error)
assert not ray.is_initialized()
ray.init(num_cpus=2, include_dashboard=False)  # Whoever started it stops it.
bug = study.but(fault="bug")
try:
    attnscope.run(bug, place / "bug", on="ray")
except attnscope.AttnscopeError as error:
    print(error)
attnscope.run(study, place / "far", on="ray", resume=True)
print("same" if files(place / "far") == files(place / "here") else "different")
"""


def test_a_cluster_is_started_interrupted_and_stopped_and_the_run_goes_on(tmp_path: Path) -> None:
    done = python("-c", STOPPED, str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    first, *others, last = done.stdout.splitlines()
    assert re.match("interrupted: [23] of 4 runs are complete", first)
    assert others[0].startswith("the run of steep, seed 1, broke 3 times on the cluster (")
    assert "ValueError: a bug of seed 1. What it had sent is kept" in others[0]
    assert last == "same"


def test_processors_of_a_node_need_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"takes 2 processors without a cluster: expected on"):
        attnscope.run(Bowl(), tmp_path / "run", cpus=2)
    with pytest.raises(AttnscopeError, match="on = 'mars': expected 'local', 'ray'"):
        attnscope.run(Relay(), tmp_path / "run", on="mars")


def test_a_cluster_that_is_not_there_leaves_the_run_as_it_is(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with pytest.raises(AttnscopeError, match="no Ray cluster answers there"):
        attnscope.run(Bowl(), tmp_path / "run", on="ray://127.0.0.1:9")
    tree = attnscope.run(Bowl(), tmp_path / "run", workers=1)
    assert tree.attrs["status"] == ALL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
