"""Nodes of a cluster that die in the middle of runs: `python -m torture.nodes` from ``tests``.

Two nodes of one processor each do the runs of a study. Time and again, when a run has got somewhere
and checkpoints have come back, the node under one of them is killed and another joins. At the end
every file of readings has to be the one that a run on this computer writes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attnscope
from attnscope.studies.lu2021 import Sen
from attnscope.sweeps.folder import SweepFolder
from attnscope.trajectory import RunFolder
from toy_study import Bowl

OFTEN = """
import sys
if any("attnscope.workers" in word for word in sys.orig_argv):
    from attnscope.trajectory import pace, travel
    pace.SHARE = 0
    travel.Sender.__init__.__kwdefaults__["every"] = 0.3
    from attnscope.sweeps import point
    point.EVERY = 0.3
"""
"""What every worker of the cluster does first, so that checkpoints come long before the end."""


@contextmanager
def two_nodes(place: Path) -> Iterator[Any]:
    """Start a cluster of a head without processors and two nodes of one each."""
    (place / "sitecustomize.py").write_text(OFTEN)
    os.environ.update(PYTHONPATH=str(place), RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # on a machine that is busy
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
    )
    try:
        cluster.nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        os.environ["RAY_ADDRESS"] = cluster.address
        yield cluster
    finally:
        os.environ.pop("RAY_ADDRESS", None)
        del os.environ["PYTHONPATH"]
        cluster.shutdown()


def files(path: Path) -> dict[str, bytes]:
    """Return the readings of a run, file by file."""
    store = RunFolder(path).store
    found = (file for file in store.rglob("*") if file.is_file())
    return {str(file.relative_to(store)): file.read_bytes() for file in found}


class Killer:
    """Hears how far runs are, and kills a node under them when checkpoints have come back."""

    def __init__(self, cluster: Any, kept: Path, kills: int) -> None:
        self.cluster, self.kept, self.left = cluster, kept, kills
        self.last: dict[str, float] = {}
        self.killed: list[float] = []

    def __call__(self, *_: Any) -> None:
        """Kill the older node once a run under way has a checkpoint newer than the last."""
        there = {each.name: each.stat().st_mtime for each in self.kept.glob("*") if each.exists()}
        fresh = [name for name, when in there.items() if when > self.last.get(name, 0.0)]
        if self.left and fresh and time.monotonic() - (self.killed or [0.0])[-1] > 3:
            self.left -= 1
            self.killed.append(time.monotonic())
            self.last = there
            self.cluster.remove_node(self.cluster.nodes.pop(0), allow_graceful=False)
            self.cluster.nodes.append(self.cluster.add_node(num_cpus=1))


def speed(place: Path) -> None:
    """Time 24 short runs on two nodes against two processes, from the first word of a run on."""
    study = Bowl().but(engine="descent", epochs=12_000, points=201, seeds=12)

    def timed(out: str, **where: Any) -> float:
        first: list[float] = []
        attnscope.run(
            study, place / out, listener=lambda *_: first.append(time.monotonic()), **where
        )
        return time.monotonic() - first[0]

    with two_nodes(place):
        for number in range(2):
            here, far = timed(f"here{number}", workers=2), timed(f"far{number}", on="auto")
            print(f"two processes: {here:.1f} s, two nodes: {far:.1f} s, {far / here:.2f} times")


OTHERWISE = ("zarr.json", "stats/seconds")
"""Of a point's file: when it was made, and how long that took."""


def archives(path: Path) -> dict[str, Mapping[str, bytes]]:
    """Return what the file of every point of a sweep holds, by the point's values."""
    folder, found = SweepFolder(path), {}
    for row in folder.rows():
        if row["outcome"] != "failed":
            with zipfile.ZipFile(folder.point_path(row["point"])) as archive:
                names = [n for n in archive.namelist() if not n.startswith(OTHERWISE)]
                found[str(row["values"])] = {name: archive.read(name) for name in names}
    return found


def sweep(study: Sen, place: Path, kills: int) -> None:
    """Kill nodes under a sweep of four points, and compare every array of every point."""
    over = {"m": [4, 6], "lr": [0.05, 0.1]}
    attnscope.sweep(study, over, place / "local", workers=2)
    with two_nodes(place) as cluster:
        killer = Killer(cluster, place / "far" / "going", kills)
        begun = time.monotonic()
        attnscope.sweep(study, over, place / "far", on="auto", listener=killer)
        seconds = time.monotonic() - begun
    here, far = archives(place / "local"), archives(place / "far")
    pairs = [(point, name) for point in here for name in here[point]]
    other = [(p, n) for p, n in pairs if here[p][n] != far.get(p, {}).get(n)]
    lost = len(here) - len(far)
    print(
        f"on two nodes: {seconds:.0f} s, {len(killer.killed)} nodes killed, {lost} of "
        f"{len(here)} points lost, {len(other)} of {len(pairs)} arrays differ"
    )
    shutil.rmtree(place)
    if lost or other or killer.left:
        raise SystemExit(1)


def main() -> None:
    """Kill nodes and print what came of it, or time them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=60_000)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--sweep", action="store_true", help="of a sweep, not of a study's runs")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    if options.speed:
        speed(place)
        return
    study = Sen(
        engine="descent",
        epochs=options.epochs,
        seeds=2,
        dictionary=60,
        train=40,
        test=20,
        m=4,
        points=1001,
    )
    if options.sweep:
        sweep(study.but(points=101), place, options.kills)
        return
    begun = time.monotonic()
    attnscope.run(study, place / "local", workers=2)
    print(f"on this computer: {time.monotonic() - begun:.0f} s", flush=True)
    with two_nodes(place) as cluster:
        killer = Killer(cluster, place / "far" / "checkpoints", options.kills)
        begun = time.monotonic()
        attnscope.run(study, place / "far", on="auto", listener=killer)
        seconds = time.monotonic() - begun
    here, far = files(place / "local"), files(place / "far")
    other = [name for name in here if here[name] != far.get(name)]
    states = [RunFolder(place / "far").state(run) for run in range(len(study.runs()))]
    lost = sum(state.get("outcome") != "finished" for state in states)
    print(
        f"on two nodes: {seconds:.0f} s, {len(killer.killed)} nodes killed, {lost} of "
        f"{len(states)} runs lost, {len(other)} of {len(here)} files differ"
    )
    shutil.rmtree(place)
    if lost or other or here.keys() != far.keys() or killer.left:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
