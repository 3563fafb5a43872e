"""The spec of ``song2024.landscape``, its two stages, and the planes of their paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Annotated, Any, Literal

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count, Positive, Several
from attnscope.engines import Adam, Given, Linear, Observable, Reached, Record, Switch, snapshots
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.kernel_classifier_probe import FixedLoss, TrainingLoss, least_smoothed
from attnscope.models.kernels.row_sums import MOVES
from attnscope.probes.landscapes.path_plane import PathLandscape, path_landscape, path_of
from attnscope.report import Table
from attnscope.studies.song2024._song import CITATION
from attnscope.studies.song2024._training import CLIP, EPS, batched, classifier
from attnscope.studies.song2024.landscape.claims import BLOCKS, CASES, SOFTMAX, TWIN, claims_of
from attnscope.studies.song2024.landscape.ends import end_record
from attnscope.studies.song2024.landscape.figures import figures_of
from attnscope.studies.song2024.landscape.tables import tables_of
from attnscope.studies.song2024.landscape.tasks import (
    KERNELS,
    Letters,
    Task,
    TwoStageLoss,
    accuracy,
    loss_and_gradient,
)
from attnscope.studies.song2024.pathfinder import LEARNED, PathfinderStudy
from attnscope.studies.song2024.text import Text
from attnscope.tasks.marked_letters import MarkedLetters
from attnscope.tasks.pathfinder import Pathfinder
from attnscope.tasks.sequence_rows import fixed_rows
from attnscope.trajectory import Readings

TOLERANCE = 1e-4
"""Relative error of a surface; a picture shows a hundredth."""
LOOK = 5
"""Steps between two looks at loss and gradient in the second stage."""
AWAY = 1000
"""Added to the seed of batches for the twin of softmax."""
SHOWN = 8
"""Columns of the table of ends that the command line prints."""
MEASURED = ("loss", "accuracy", "gradient norm")
PATCHED = ("balanced", "patch", "margin", "mirrored", "pooling")
"""Settings of Pathfinder's smaller scales that tokens of patches come with."""
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

    All runs of a seed train with softmax first, on mini-batches. Then one goes on with softmax, one
    with the Gaussian kernel, one with the Gaussian kernel whose rows are divided by their sum, one
    with a wider and one with a stretched Gaussian kernel, and one is softmax once more after other
    batches. The second stage descends on the landscape's own sequences, all at once and with a rate
    that falls, until loss *and* gradient norm are at the same targets for all: surfaces are
    compared around points at rest, at equal loss. With smoothed labels such points are minima,
    at a loss that is known.

    The poster gives 20,000 steps for the first stage; of the second only "00 steps" can be read,
    and 500 is a guess. It says neither how the two directions were chosen nor how they were scaled:
    here one is random in W^Q of all layers, the other in W^K, filter-normalised, and several are
    drawn, at several radii.
    """

    seeds: Count = 3
    training: Adam = Adam(rate=2e-4, steps=20_500, batch=128, eps=EPS, clip=CLIP)
    points: Several = 42
    """Record points of the curves, evenly spaced."""
    first: Count = 20_000
    """Steps of the first stage, with softmax; from there on the rate falls to the end."""
    loss_target: Positive = 0.2
    """The second stage ends when the loss is down here (nats) ..."""
    gradient_target: Positive = 0.05
    """... and the norm of its gradient here, if both are reached before the last step."""
    smoothing: Annotated[float, Bounds(0, 0.5, open_high=True)] = 0.0
    """Probability that a label counts as the other one; the least loss is its entropy."""
    data: Literal["pathfinder", "text", "letters"] = "pathfinder"
    """Images that are drawn here, the reviews of IMDb, which have to be fetched, or words with two
    marked letters."""
    dropout: Annotated[float, Bounds(0, 1, open_high=True)] = 0.1
    """Share that dropout leaves out in the first stage."""
    images: Pathfinder = Pathfinder()
    patches: bool = False
    """Tokens of images are patches; see the smaller scales of song2024.pathfinder."""
    words: MarkedLetters = MarkedLetters()
    train: Count = 160_000
    """Images or words to learn from; of images in pairs those that are drawn."""
    held_out: Count = 2000
    """Sequences that were never learned from, for the accuracy at the end."""
    length: Count = 4000
    """Bytes at which a text is cut."""
    probe: Count = 128
    """Training sequences that the second stage and the landscape are made of."""
    draws: Several = 5
    """Draws of the two directions."""
    grid: Annotated[int, Bounds(5)] = 51
    """Points along each side of a plane, an odd number."""
    radii: tuple[float, ...] = (0.25, 0.5, 1.0)
    """Steps from the middle of a plane to its sides, in norms of the weights, rising."""
    path_points: int = 21
    """Snapshots of the second stage, denser at its beginning."""

    citation = CITATION
    renamed = {"radius": None}
    quick = {
        "seeds": 8,
        "data": "letters",
        "rate": 2e-3,
        "steps": 900,
        "first": 300,
        "batch": 64,
        "points": 19,
        "loss_target": 0.139,
        "gradient_target": 0.02,
        "smoothing": 0.03,
        "dropout": 0.0,
        "train": 20_000,
        "probe": 128,
        "draws": 2,
        "grid": 9,
        "path_points": 21,
    }
    desk = {
        "seeds": 3,
        "data": "pathfinder",
        "rate": 1e-3,
        "steps": 2000,
        "first": 1500,
        "batch": 64,
        "warmup": 200,
        "decay": 0.01,
        "points": 41,
        "loss_target": 0.139,
        "gradient_target": 0.05,
        "smoothing": 0.03,
        "dropout": 0.0,
        "window": 12,
        "contour_length": 2,
        "distractors": 0,
        "patches": True,
        "train": 20_000,
        "held_out": 4000,
        "probe": 256,
        "draws": 2,
        "grid": 9,
        "path_points": 21,
    }
    labels = {"measure": MEASURED, "block": tuple(BLOCKS), "kernel": CASES, "moves": MOVES}
    cases = CASES
    claims, figures, tables = claims_of, figures_of, tables_of

    def check(self) -> None:
        """Check both stages, the targets, the radii, and the snapshots of the second stage."""
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
        least = least_smoothed(self.smoothing)
        if self.loss_target <= least:
            raise AttnscopeError(
                f"loss_target = {self.loss_target:g} with smoothing = {self.smoothing:g}: expected "
                f"a target above {least:.4g}, the entropy of the labels, which no model gets below."
            )
        if not self.radii or not np.all(np.diff((0.0, *self.radii)) > 0):
            raise AttnscopeError(
                f"radii = {self.radii}: expected one or more rising numbers above 0."
            )
        if self.grid % 2 == 0:
            raise AttnscopeError(
                f"grid = {self.grid}: expected an odd number, so that a point is in the middle."
            )

    @property
    def second(self) -> int:
        """Most steps of the second stage."""
        return self.training.steps - self.first

    @property
    def middle(self) -> int:
        """Number of the radius at which parts of the weights are held."""
        return len(self.radii) // 2

    def axis(self, radius: int) -> np.ndarray:
        """Return the steps along either direction of a plane of one of the radii."""
        return np.linspace(-self.radii[radius], self.radii[radius], self.grid)

    def describe(self) -> str:
        """Say how long runs are."""
        return (
            f"{self.first:,} steps of Adam with softmax, and at most {self.second:,} with either "
            f"kernel to a loss of {self.loss_target:g} and a gradient norm of "
            f"{self.gradient_target:g}"
        )

    def engine(self, case: str, seed: int) -> Adam:
        """Return the training with a rate that falls over the second stage."""
        return replace(self.training, fall=self.first)

    def task(self) -> Task:
        """Return what is learned, and the model that learns it."""
        if self.data == "text":
            return Text(length=self.length, dropout=self.dropout)
        if self.data == "letters":
            return Letters(self.words, self.train, self.held_out)
        patched = {name: LEARNED[name] for name in PATCHED} if self.patches else {}
        images = PathfinderStudy(task=self.images, train=self.train, dropout=self.dropout)
        return images.but(test=self.held_out, **patched)

    def fixed_loss(self) -> FixedLoss:
        """Return the loss on the sequences that landscapes are made of."""
        train, _ = self.task().sequences()
        return FixedLoss(train.batch(fixed_rows(train, self.probe)), self.smoothing)

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed; all but the twin share the first stage."""
        task = self.task()
        train, test = task.sequences()
        model, fixed = task.model(SOFTMAX, seed), self.fixed_loss()
        rows, unseen = fixed_rows(train, self.probe), fixed_rows(test, self.held_out)
        batches = seed + AWAY * (case == TWIN)

        def measured(module: nn.Module) -> Tensor:
            return loss_and_gradient(classifier(module), fixed)

        def probe(module: nn.Module) -> Tensor:
            loss, norm = measured(module)
            right = accuracy(classifier(module), train, rows)
            return torch.stack([loss, torch.tensor(right), norm])

        def change(module: nn.Module) -> None:
            classifier(module).set_kernel(KERNELS[case])
            stages.change()

        def last(module: nn.Module) -> Tensor:
            return torch.tensor(accuracy(classifier(module), test, unseen))

        words = "loss (nats), accuracy and gradient norm on the landscape's sequences"
        curve = Observable("probe", probe, ("measure",), "", words)
        records = [
            Record((curve,), Linear(self.points)),
            end_record(self, case, model, fixed, measured, last),
            snapshots(model, Given(tuple(self.path_times()))),
        ]
        switch = Switch(float(self.first), change, f"the kernel becomes {case}")
        stages = TwoStageLoss(TrainingLoss(train, task.vary(), self.smoothing), fixed)
        stop = Reached(measured, self.targets, float(LOOK), float(self.first))
        made = batched(train, model, records, batches, self.training, switch)
        return replace(made, loss=stages, stop=(stop,))

    @property
    def targets(self) -> dict[str, float]:
        """What the second stage is to reach, by name."""
        return {"loss": self.loss_target, "gradient norm": self.gradient_target}

    def path_times(self) -> list[float]:
        """Return the steps at which the second stage is kept, denser at its beginning."""
        shares = np.linspace(0, 1, self.path_points) ** 2
        return [float(time) for time in np.unique((self.first + self.second * shares).round())]

    def truth(self) -> xr.Dataset:
        """Return the names of the blocks whose curvature is read."""
        return xr.Dataset(attrs={"blocks": list(BLOCKS)})

    def theory(self, run: Readings) -> xr.Dataset:
        """Return the plane of the path of the second stage, for seed 0 of every case.

        A path that ended before its time, its targets reached, is as long as it is; what would have
        come after is NaN. One of fewer than three points spans no plane and is NaN throughout.
        """
        params, loss = run["params"].to_dataset(), self.fixed_loss()
        planes: list[PathLandscape | None] = []
        for case in self.cases:
            model, number = self.task().model(SOFTMAX, 0), self.runs().index((case, 0))
            model.set_kernel(KERNELS[case])
            # The first snapshot is the start of training, which the path leaves out.
            path = path_of(params.isel(run=number, snapshot=slice(1, None)), model)
            path = path[np.isfinite(path).all(axis=1)]
            if len(path) < 3 or np.ptp(path, axis=0).max() == 0:
                planes.append(None)
                continue
            planes.append(path_landscape(model, loss, path, points=self.grid, tolerance=TOLERANCE))
        times = self.path_times()
        kept: dict[str, Any] = {
            name: (("kernel", *dims), np.stack([self._part(p, part, dims) for p in planes]))
            for name, (part, *dims) in PLANE.items()
        }
        kept["path_step"] = ("point", times)
        words = ["" if plane is None else plane.words for plane in planes]
        return xr.Dataset(kept, attrs={"words": words})

    def _part(self, plane: PathLandscape | None, part: str, dims: list[str]) -> np.ndarray:
        sizes = {"point": len(self.path_times()), "component": 2}
        whole = np.full([sizes.get(dim, self.grid) for dim in dims], np.nan)
        if plane is not None:
            found = np.asarray(attrgetter(part)(plane))
            whole[tuple(slice(size) for size in found.shape)] = found
        return whole

    def printed(self, run: Readings) -> list[Table]:
        """Print where every run ended, and the quotients by radius."""
        ends, ratios, *_ = self.tables(run)
        few = slice(SHOWN)
        rows = tuple(row[few] for row in ends.rows)
        return [Table(ends.name, ends.title, ends.columns[few], rows), ratios]
