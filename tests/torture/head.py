"""A live cluster, reached as people reach theirs: `python -m torture.head` from ``tests``.

`ray start --head` is started on this computer with a port for clients. A study and a sweep go
there by ``ray://127.0.0.1:PORT`` and by ``auto``, and have to write what they write without a
cluster. Two points of the sweep end their own process on every try; one run wants more memory than
there is; and a driver of another version knocks. With ``--memory`` the cluster takes its node for
full.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attnscope
from attnscope.experiment import Problem
from attnscope.sweeps.folder import SweepFolder
from torture.nodes import archives, files
from toy_study import Bowl


@dataclass(frozen=True)
class Deadly(Bowl):
    """A study that takes its process along from some setting on, as one without memory does."""

    much: int = 0

    def build(self, case: str, seed: int) -> Problem:
        """End this process if there is too much to do."""
        if self.much > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().build(case, seed)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens to."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


@contextmanager
def live_head(**variables: str) -> Iterator[tuple[str, str]]:
    """Start the head of a cluster with two processors; yield what clients and drivers call it."""
    place = tempfile.mkdtemp(prefix="ray-")
    port, client = free_ports(2)
    program = f"""
import sys
from ray.scripts.scripts import main
sys.argv = ["ray", "start", "--head", "--block", "--port={port}", "--node-ip-address=127.0.0.1",
            "--ray-client-server-port={client}", "--num-cpus=2", "--disable-usage-stats",
            "--object-store-memory=100000000", "--include-dashboard=false", "--temp-dir={place}"]
main()
"""
    log = Path(place) / "started"
    with log.open("w") as out:
        head = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=out,
            stderr=out,
            env={**os.environ, "RAY_AUTH_MODE": "disabled", **variables},
        )
    try:
        end = time.monotonic() + 120
        while "Ray runtime started" not in log.read_text():
            if head.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"no head: {log.read_text()}")
            time.sleep(0.2)
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", client), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"ray://127.0.0.1:{client}", f"127.0.0.1:{port}"
    finally:
        head.terminate()
        try:
            head.wait(30)
        except subprocess.TimeoutExpired:
            head.kill()
        shutil.rmtree(place, ignore_errors=True)


def attempt(what: str, call: Any) -> None:
    """Print what becomes of something that cannot be done."""
    try:
        call()
        print(f"{what}: done")
    except attnscope.AttnscopeError as error:
        print(f"{what}: {str(error).splitlines()[0]}")


def main() -> None:
    """Do all of it, and print what came of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory", action="store_true", help="a node that is full")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp())
    study = Bowl().but(engine="descent", epochs=2000, points=1001)
    if options.memory:
        full = {"RAY_memory_usage_threshold": "0.001", "RAY_memory_monitor_refresh_ms": "100"}
        with live_head(**full) as (client, _):
            attempt("full", lambda: attnscope.run(study, place / "full", on=client))
        again = attnscope.run(study, place / "full", resume=True, workers=1)
        print(again.attrs["status"])
        shutil.rmtree(place)
        return
    values, fine = {"much": [1, 2, 3], "epochs": [50, 60]}, {"much": [1, 2], "epochs": [50, 60]}
    deadly = Deadly(seeds=1).but(engine="descent", points=11)
    attnscope.run(study, place / "here", workers=1)
    attnscope.sweep(deadly, fine, place / "sweep here", workers=1)
    with live_head() as (client, address):
        import ray

        attnscope.run(study, place / "far", on=client)
        print("study", "same" if files(place / "far") == files(place / "here") else "different")
        attempt("deadly", lambda: attnscope.sweep(deadly, values, place / "sweep far", on=client))
        rows = SweepFolder(place / "sweep far").rows()
        same = archives(place / "sweep far") == archives(place / "sweep here")
        print("sweep", "same" if same else "different", sorted(row["outcome"] for row in rows))
        attempt("room", lambda: attnscope.run(study, place / "no", on=client, memory=1e5))
        os.environ["RAY_ADDRESS"] = address
        attnscope.run(study, place / "auto", on="auto")
        print("auto", "same" if files(place / "auto") == files(place / "here") else "different")
        version, ray.__version__ = ray.__version__, "1.0.0"
        for on in ("auto", client):
            attempt("version", lambda on=on: attnscope.run(study, place / "no", on=on))
        ray.__version__ = version
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
