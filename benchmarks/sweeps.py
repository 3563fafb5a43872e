"""What a sweep costs beside training: `python benchmarks/sweeps.py`.

Prints the ratio of two processes to one on runs of a second of processor time, what a run costs
beyond its training, and for a thousand points: disk, opening, the lab's page, the driver's memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import attnscope
from attnscope.claims import Claim, below
from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.experiment import Problem, Study
from attnscope.trajectory import final


@dataclass(frozen=True)
class Busy(Study):
    """Takes a given processor time, and then some steps of descent."""

    seeds: int = 1
    training: Descent = Descent(lr=0.1, epochs=100)
    a: float = 0.0
    b: float = 0.0
    work: float = 1.0

    def build(self, case: str, seed: int) -> Problem:
        """Spend the time, then make a small problem of forty curves."""
        begun = time.process_time()
        while time.process_time() - begun < self.work:
            pass
        model = nn.Linear(8, 5, dtype=torch.float64)

        def loss(module: nn.Module) -> Tensor:
            return module.get_parameter("weight").square().sum()

        curves = (
            Observable("loss", loss),
            Observable("weight", lambda m: m.get_parameter("weight"), ("row", "column")),
        )
        return Problem(model, loss, [Record(curves, Linear(101))])

    def claims(self) -> list[Claim]:
        """Return one that is decided by the fields alone."""
        height = self.a + self.b**2
        return [
            Claim(
                "low",
                "It is low.",
                lambda run, more: 0 * final(run.loss).mean("case") + height + more,
                0.0,
                below(0.5),
                (9.0, "a mountain on top"),
            )
        ]


def memory() -> float:
    """Return the megabytes that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def pool_against_one(runs: int, folder: Path) -> None:
    """Compare two processes with one on runs of a second."""
    over = {"a": [n / runs for n in range(runs)]}
    took: dict[int, float] = {}
    for workers in (1, 2):
        begun = time.perf_counter()
        tree = attnscope.sweep(Busy(), over, folder / f"pool-{workers}", workers=workers)
        took[workers] = time.perf_counter() - begun
        own = float(tree.to_dataset(inherit=False)["seconds"].sum())
        print(
            f"{runs} runs of 1 s of processor, {workers} processes: {took[workers]:.1f} s by the "
            f"clock, {own:.1f} s within points (load {os.getloadavg()[0]:.1f})",
            flush=True,
        )
    print(f"two processes against one: {took[1] / took[2]:.2f}x", flush=True)


def thousand(points: int, folder: Path) -> None:
    """Sweep many small points; say what each costs, and whether memory grows."""
    side = round(points**0.5)
    over = {"a": [n / side for n in range(side)], "b": [n / side for n in range(points // side)]}
    held: list[float] = []

    def hear(done: float, total: int, complete: int, row: Any) -> None:
        if row:
            held.append(memory())

    busy, begun = time.process_time(), time.perf_counter()
    out = folder / "thousand"
    attnscope.sweep(Busy(work=0.0), over, out, workers=1, listener=hear)
    busy, clock = time.process_time() - busy, time.perf_counter() - begun
    rows = attnscope.open_sweep(out)
    # By the clock, so only the clock can be compared with it.
    trained = float(rows["stats"].seconds.sum())
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 2**20
    count = len(held)
    print(
        f"{count} points in one process, a run: {1e3 * busy / count:.0f} ms of processor, "
        f"everything included; by the clock {1e3 * clock / count:.0f} ms, "
        f"{1e3 * (clock - trained) / count:.0f} of them beyond training "
        f"(load {os.getloadavg()[0]:.1f})"
    )
    print(
        f"driver holds {held[count // 10]:.0f} MB after {count // 10} points, {held[-1]:.0f} MB "
        f"after {count}; {size:.0f} MB on disk"
    )
    begun = time.perf_counter()
    tree = attnscope.open_sweep(out)
    print(f"opening: {time.perf_counter() - begun:.2f} s")
    begun = time.perf_counter()
    float(tree["observables"].weight.isel(a=3, b=slice(0, 10), step=-1).sum())
    print(f"reading one array of ten points: {time.perf_counter() - begun:.3f} s")
    from attnscope.lab.sweep_page import sweep_body, sweeps_section

    begun = time.perf_counter()
    sweeps_section(folder, [each.name for each in folder.iterdir()])
    print(f"listing in the lab: {time.perf_counter() - begun:.3f} s")
    begun = time.perf_counter()
    page = next(sweep_body(folder, "thousand", "low"))["html"]
    print(f"its page in the lab: {time.perf_counter() - begun:.2f} s, {len(page) >> 10} KB")


def refined(folder: Path) -> None:
    """Follow a boundary to a hundredth of each axis, and count the points."""
    from attnscope.sweeps import Grid, SweepFolder, axes_of
    from attnscope.sweeps.refine import Refinement

    for over in ({"a": [0.0, 1.0]}, {"a": [0.0, 0.25, 0.5, 0.75, 1.0], "b": [0.0, 0.3, 0.6, 0.9]}):
        out = folder / f"refined-{len(over)}"
        study = Busy(work=0.0, epochs=1)
        attnscope.sweep(study, over, out, workers=1, refine="low", within=0.01)
        full = Refinement(Grid(study, axes_of(study, over)), "low", 0.01, 4).full()
        done = len(SweepFolder(out).rows())
        print(
            f"boundary over {len(over)} fields to 1 %: {done} points, a grid of that resolution "
            f"{full}: {full / done:.1f}x fewer",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--points", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        thousand(options.points, Path(made))
        refined(Path(made))
        pool_against_one(options.runs, Path(made))
