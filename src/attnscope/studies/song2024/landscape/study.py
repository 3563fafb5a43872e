"""The spec of ``song2024.landscape``, its two stages, and the planes of their paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count, Positive, Several
from attnscope.engines import Adam, Final, Given, Linear, Observable, Record, Switch, snapshots
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernel_classifier_probe import MEASURES, FixedLoss, evaluate
from attnscope.probes.landscapes.directions import matching, random_directions, still
from attnscope.probes.landscapes.landscape import landscape
from attnscope.probes.landscapes.path_plane import path_landscape, path_of
from attnscope.probes.landscapes.sharpness import sharpness
from attnscope.studies.song2024._song import CITATION
from attnscope.studies.song2024._training import CLIP, EPS, batched, classifier
from attnscope.studies.song2024.landscape.claims import BLOCKS, CASES, PAIR, SOFTMAX, claims_of
from attnscope.studies.song2024.landscape.figures import figures_of, tables_of
from attnscope.studies.song2024.pathfinder import PathfinderStudy
from attnscope.studies.song2024.text import Text
from attnscope.tasks.pathfinder import Pathfinder
from attnscope.tasks.sequence_rows import fixed_rows
from attnscope.trajectory import Readings

TOLERANCE = 1e-4
"""Relative error of a surface; a picture shows a hundredth."""
PLANE = {
    "path_a": ("a", "point"),
    "path_b": ("b", "point"),
    "path_loss": ("loss", "point"),
    "path_shadow": ("shadow", "point"),
    "off_plane": ("off_plane", "point"),
    "path_distance": ("distance", "point"),
    "path_surface": ("landscape.loss", "path_row", "path_column"),
    "path_columns": ("landscape.a", "path_column"),
    "path_rows": ("landscape.b", "path_row"),
    "path_share": ("share", "component"),
}
"""What is kept of the plane of a path, and its axes."""


@dataclass(frozen=True)
class Landscape(Study):
    """Two stages of training, and the loss over planes in W^Q and W^K at the end.

    All runs of a seed train with softmax first; then one goes on with softmax, one with the
    Gaussian kernel and one with the Gaussian kernel whose rows are divided by their sum, on the
    same batches. The poster gives 20,000 steps for the first stage; of the
    second only "00 steps" can be read, and 500 is a guess. It says neither how the two directions
    were chosen nor how they were scaled: here one is random in W^Q of all layers, the other in W^K,
    filter-normalised, and several are drawn. Learning rates are constant, so that the second stage
    learns.
    """

    seeds: Count = 3
    training: Adam = Adam(rate=2e-4, steps=20_500, batch=128, eps=EPS, clip=CLIP)
    points: Several = 42
    """Record points of the curves, evenly spaced."""
    first: Count = 20_000
    """Steps of the first stage, with softmax."""
    data: Literal["pathfinder", "text"] = "pathfinder"
    """Images that are drawn here, or the reviews of IMDb, which have to be fetched."""
    dropout: Annotated[float, Bounds(0, 1, open_high=True)] = 0.1
    """Share that dropout leaves out."""
    images: Pathfinder = Pathfinder()
    train: Count = 160_000
    """Images to learn from."""
    length: Count = 4000
    """Bytes at which a text is cut."""
    probe: Count = 128
    """Training sequences that the landscape is made of."""
    draws: Several = 5
    """Draws of the two directions."""
    grid: Annotated[int, Bounds(5)] = 51
    """Points along each side of a plane."""
    radius: Positive = 1.0
    """Steps from the middle of a plane to its sides, in norms of the weights."""
    path_points: int = 21
    """Snapshots of the second stage."""

    citation = CITATION
    # So few steps do not learn to tell contours apart, but they learn a few images by heart.
    quick = {
        "steps": 140,
        "points": 8,
        "first": 100,
        "rate": 1e-3,
        "batch": 16,
        "dropout": 0.0,
        "window": 8,
        "contour_length": 1,
        "train": 512,
        "length": 128,
        "probe": 16,
        "draws": 2,
        "grid": 27,
        "radius": 0.5,
        "path_points": 11,
    }
    labels = {"measure": MEASURES, "block": tuple(BLOCKS), "kernel": CASES}
    cases = CASES
    claims, figures, tables = claims_of, figures_of, tables_of

    def check(self) -> None:
        """Check that there are two stages, and steps for the snapshots of the second."""
        if not self.first < self.training.steps:
            raise AttnscopeError(
                f"first = {self.first} of {self.training.steps} steps: expected a first stage, and "
                "steps left for the second."
            )
        if not 3 <= self.path_points <= self.second + 1:
            raise AttnscopeError(
                f"path_points = {self.path_points}: expected 3 to {self.second + 1}, one for each "
                "step of the second stage."
            )

    @property
    def second(self) -> int:
        """Steps of the second stage."""
        return self.training.steps - self.first

    @property
    def axis(self) -> np.ndarray:
        """Steps along either direction of a plane."""
        return np.linspace(-self.radius, self.radius, self.grid)

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.first:,} steps of Adam with softmax and {self.second:,} with either kernel"

    def task(self) -> PathfinderStudy | Text:
        """Return the training study whose sequences and model these are."""
        if self.data == "text":
            return Text(length=self.length, dropout=self.dropout)
        return PathfinderStudy(task=self.images, train=self.train, dropout=self.dropout)

    def fixed_loss(self) -> FixedLoss:
        """Return the loss on the sequences that landscapes are made of."""
        train, _ = self.task().sequences()
        return FixedLoss(train.batch(fixed_rows(train, self.probe)))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed; all of a seed share the first stage."""
        train, _ = self.task().sequences()
        model, rows = self.task().model(SOFTMAX, seed), fixed_rows(train, self.probe)

        def probe(module: nn.Module) -> Tensor:
            return evaluate(classifier(module), train, rows)

        def change(module: nn.Module) -> None:
            classifier(module).set_kernel(case)

        words = "mean cross-entropy (nats) and accuracy of the landscape's sequences"
        curve = Observable("probe", probe, ("measure",), "", words)
        records = [
            Record((curve,), Linear(self.points)),
            self.end_record(model, self.fixed_loss()),
            snapshots(model, Given(tuple(self.path_times()))),
        ]
        switch = Switch(float(self.first), change, f"the kernel becomes {case}")
        return batched(train, model, records, seed, self.training, switch)

    def path_times(self) -> list[float]:
        """Return the steps at which the second stage is kept."""
        times = np.linspace(self.first, self.end, self.path_points).round()
        return [float(time) for time in np.unique(times)]

    def end_record(self, model: KernelClassifier, loss: FixedLoss) -> Record:
        """Return the readings at the end of a run; at the start they are not made, and NaN."""
        start, axis = [p.detach().clone() for p in model.parameters()], self.axis

        def surfaces(trained: KernelClassifier) -> list[np.ndarray]:
            drawn = (random_directions(trained, PAIR, seed=draw) for draw in range(self.draws))
            found = (landscape(trained, loss, d, axis, axis, tolerance=TOLERANCE) for d in drawn)
            return [each.loss for each in found]

        def largest(trained: KernelClassifier) -> list[float]:
            return [sharpness(trained, loss, block).eigenvalues[0] for block in BLOCKS.values()]

        def smallest(trained: KernelClassifier) -> float:
            return sharpness(trained, loss, PAIR, end="smallest").eigenvalues[0]

        def mass(trained: KernelClassifier) -> list[float]:
            with still(trained):
                every = trained.attention_weights(loss.batch.ids, loss.batch.mask)
                return [float(weights.sum(-1).mean()) for weights in every]

        def norms(trained: KernelClassifier) -> list[float]:
            def norm(name: str) -> float:
                return float(trained.get_parameter(name).detach().norm())

            blocks = (matching(trained, block) for block in BLOCKS.values())
            return [float(np.linalg.norm([norm(name) for name in block])) for block in blocks]

        def at_end(
            name: str, read: Callable[[KernelClassifier], object], meaning: str, **sizes: int
        ) -> Observable:
            def reader(module: nn.Module) -> Tensor:
                if all(map(torch.equal, module.parameters(), start)):
                    return torch.full(tuple(sizes.values()), torch.nan, dtype=torch.float64)
                return torch.as_tensor(np.asarray(read(classifier(module)), dtype=float))

            unit = "" if name in ("mass", "norm") else "nats"
            return Observable(name, reader, tuple(sizes), unit, meaning)

        surface = "loss at θ* + a d₁ + b d₂, d₁ in W_Q and d₂ in W_K, filter-normalised"
        top = "largest eigenvalue of the loss's Hessian in a block of parameters"
        low = "smallest eigenvalue of the loss's Hessian in W_Q and W_K"
        sums = "sum of a query's weights over all keys, mean over queries; 1 with softmax"
        blocks, layers = len(BLOCKS), len(model.attention)
        ends = (
            at_end("surface", surfaces, surface, draw=self.draws, b=self.grid, a=self.grid),
            at_end("largest", largest, top, block=blocks),
            at_end("smallest", smallest, low),
            at_end("mass", mass, sums, layer=layers),
            at_end("norm", norms, "Frobenius norm of a block", block=blocks),
        )
        return Record(ends, Final(), dim="end")

    def truth(self) -> xr.Dataset:
        """Return the names of the blocks whose curvature is read."""
        return xr.Dataset(attrs={"blocks": list(BLOCKS)})

    def theory(self, run: Readings) -> xr.Dataset:
        """Return the plane of the path of the second stage, for seed 0 of every case."""
        params, loss, planes = run["params"].to_dataset(), self.fixed_loss(), []
        for case in self.cases:
            model, number = self.task().model(case, 0), self.runs().index((case, 0))
            # The first snapshot is the start of training, which the path leaves out.
            path = path_of(params.isel(run=number, snapshot=slice(1, None)), model)
            planes.append(path_landscape(model, loss, path, points=self.grid, tolerance=TOLERANCE))
        kept: dict[str, Any] = {
            name: (("kernel", *dims), np.stack([attrgetter(part)(plane) for plane in planes]))
            for name, (part, *dims) in PLANE.items()
        }
        kept["path_step"] = ("point", self.path_times())
        return xr.Dataset(kept, attrs={"words": [plane.words for plane in planes]})
