"""A quadratic bowl whose readings are of every kind, and the folder of one run of it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from attnscope.engines import Descent, Linear, Observable, Record
from attnscope.engines.solution import Solution
from attnscope.trajectory import FORMAT, RunFolder, ZarrSink, create_store, write_json

LR = 0.01
STEPS = 400


class Point(nn.Module):
    """Three double-precision numbers, and how often they were read."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor([1.0, -2.0, 0.3], dtype=torch.float64))


def bowl(model: nn.Module) -> Tensor:
    """½ Σ c x², so that every coordinate decays at a rate of its own."""
    x = model.get_parameter("x")
    return 0.5 * (torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64) * x * x).sum()


def records(points: int) -> list[Record]:
    """Return curves at ``points`` points, and parameters and other kinds of numbers at 5."""

    def at(model: nn.Module) -> Tensor:
        return model.get_parameter("x")

    return [
        Record(
            (
                Observable("loss", bowl, (), "nats", "½ Σ c x²"),
                Observable("x", at, ("coordinate",), "", "where it is"),
                Observable("single", lambda m: at(m).float().outer(at(m).float()), ("i", "j")),
            ),
            Linear(points),
        ),
        Record(
            (
                Observable("count", lambda m: (at(m) * 2**45).long(), ("coordinate",)),
                Observable("flag", lambda m: at(m) > 0.2, ("coordinate",)),
            ),
            Linear(5),
            dim="rare",
        ),
        Record((Observable("x", at, ("coordinate",)),), Linear(3), "snapshot", "params"),
    ]


def make_folder(path: Path, points: int, runs: int = 2) -> RunFolder:
    """Create the store of ``runs`` runs and a manifest."""
    folder = RunFolder(path)
    arrays = create_store(
        folder,
        Point(),
        records(points),
        runs=runs,
        until=LR * STEPS,
        grid=LR,
        attrs={"study": "bowl", "spec": {"points": points}},
    )
    manifest = {
        "format": FORMAT,
        "attnscope": "0.1.0",
        "study": "bowl",
        "spec": {"points": points, "pair": [1, 2]},
        "runs": [{"case": f"case {i}", "seed": 10 + i} for i in range(runs)],
        "lr": LR,
        "arrays": arrays,
    }
    write_json(folder.manifest_path, manifest)
    return folder


def descend(sink: object, points: int, **options: object) -> Solution:
    """Take all steps into a sink."""
    return Descent(lr=LR).run(
        Point(),
        bowl,
        time=LR * STEPS,
        record=records(points),
        sink=sink,  # type: ignore[arg-type]
        **options,  # type: ignore[arg-type]
    )


class Stopwatch:
    """Say "stop" when asked for the ``after``-th time."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def interrupted_sink(folder: RunFolder, after: int, run: int = 0) -> ZarrSink:
    """Return a sink that stops the run after so many steps."""
    return ZarrSink(folder, run, interrupted=Stopwatch(after))
