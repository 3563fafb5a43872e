"""The loss around the end of training, softmax first and then either kernel (Fig 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import xarray as xr

from attnscope.engines import Descent, Given, Linear, Observable, Record, Switch, snapshots
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.probes.landscapes.path_plane import PathLandscape, path_landscape, path_of
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.old import Claim, Study
from attnscope.studies.song2024 import _landscape_claims, _landscape_figures, _landscape_tables
from attnscope.studies.song2024._landscape_loss import FixedLoss
from attnscope.studies.song2024._landscape_readings import (
    BLOCKS,
    GAUSSIAN,
    NORMALISED,
    SOFTMAX,
    TOLERANCE,
    end_record,
)
from attnscope.studies.song2024._song import CITATION
from attnscope.studies.song2024._training import CLIP, EPS
from attnscope.studies.song2024._training_data import fixed_rows
from attnscope.studies.song2024._training_readings import TrainingLoss, classifier, evaluate
from attnscope.studies.song2024.pathfinder import Pathfinder
from attnscope.studies.song2024.text import Text


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

    seeds: int = 3
    """Number of runs of each case, with seeds 0, 1, ..."""
    engine: Literal["flow", "descent"] = "descent"
    """Adam, step by step."""
    lr: float = 1.0
    """Unit of time: time counts steps. The learning rate is ``rate``."""
    epochs: int = 20_500
    """Steps of both stages."""
    points: int = 42
    """Record points of the curves, evenly spaced."""
    first: int = 20_000
    """Steps of the first stage, with softmax."""
    data: Literal["pathfinder", "text"] = "pathfinder"
    """Images that are drawn here, or the reviews of IMDb, which have to be fetched."""
    rate: float = 2e-4
    """Learning rate of Adam."""
    batch: int = 128
    """Sequences in a step."""
    dropout: float = 0.1
    """Share that dropout leaves out."""
    window: int = 32
    """Pixels along a side of an image."""
    contour_length: int = 14
    """Paddles of a contour."""
    train: int = 160_000
    """Images to learn from."""
    length: int = 4000
    """Bytes at which a text is cut."""
    probe: int = 128
    """Training sequences that the landscape is made of."""
    draws: int = 5
    """Draws of the two directions."""
    grid: int = 51
    """Points along each side of a plane."""
    radius: float = 1.0
    """Steps from the middle of a plane to its sides, in norms of the weights."""
    path_points: int = 21
    """Snapshots of the second stage."""

    citation = CITATION
    # So few steps do not learn to tell contours apart, but they learn a few images by heart.
    quick: ClassVar[dict[str, Any]] = {
        "epochs": 140,
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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine != "descent" or self.correct or self.lr != 1:
            raise AttnscopeError(
                f"engine = '{self.engine}', correct = {self.correct}, lr = {self.lr}: expected "
                "'descent', False and 1; time counts steps, and the learning rate is `rate`."
            )
        if self.data not in ("pathfinder", "text"):
            raise AttnscopeError(f"data = '{self.data}': expected 'pathfinder' or 'text'.")
        if not 1 <= self.first < self.epochs:
            raise AttnscopeError(
                f"first = {self.first} of {self.epochs} steps: expected a first stage, and steps "
                "left for the second."
            )
        for name, least in (("batch", 1), ("probe", 1), ("draws", 2), ("grid", 5)):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        if not 0 < self.radius < math.inf:
            raise AttnscopeError(f"radius = {self.radius}: expected a finite number above 0.")
        if not 3 <= self.path_points <= self.epochs - self.first + 1:
            raise AttnscopeError(
                f"path_points = {self.path_points}: expected 3 to {self.epochs - self.first + 1}, "
                "one for each step of the second stage."
            )
        self.task()

    def task(self) -> Pathfinder | Text:
        """Return the training study whose sequences and model these are."""
        if self.data == "text":
            return Text(length=self.length, dropout=self.dropout)
        return Pathfinder(
            window=self.window,
            contour_length=self.contour_length,
            train=self.train,
            dropout=self.dropout,
        )

    def cases(self) -> tuple[str, ...]:
        """Return the kernels of the second stage."""
        return (SOFTMAX, GAUSSIAN, NORMALISED)

    def course(self) -> str:
        """Say how long runs are."""
        second = self.epochs - self.first
        return f"{self.first:,} steps of Adam with softmax and {second:,} with either kernel"

    def make_engine(self, case: str = "", seed: int = 0) -> Descent:
        """Return Adam on mini-batches, with the change of the kernel."""
        train, _ = self.task().sequences()
        if self.batch > len(train):
            raise AttnscopeError(
                f"batch = {self.batch}: expected at most the {len(train):,} training sequences."
            )

        def change(model: torch.nn.Module) -> None:
            classifier(model).set_kernel(case)

        return Descent(
            lr=self.rate,
            optimizer="adam",
            batch_size=self.batch,
            samples=len(train),
            seed=seed,
            tick=1.0,
            eps=EPS,
            clip=CLIP,
            switches=(Switch(float(self.first), change, f"the kernel becomes {case}"),),
        )

    def fixed_loss(self) -> FixedLoss:
        """Return the loss on the sequences that landscapes are made of."""
        train, _ = self.task().sequences()
        return FixedLoss(train.batch(fixed_rows(train, self.probe)))

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed; all of a seed share the first stage."""
        task = self.task()
        train, _ = task.sequences()
        model = task.model(SOFTMAX, seed)
        rows = fixed_rows(train, self.probe)
        curve = Observable(
            "probe",
            lambda module: evaluate(classifier(module), train, rows),
            ("measure",),
            "",
            "mean cross-entropy (nats) and accuracy of the landscape's sequences",
        )
        records = [
            Record((curve,), Linear(self.points)),
            end_record(
                model, self.fixed_loss(), draws=self.draws, radius=self.radius, grid=self.grid
            ),
            snapshots(model, Given(tuple(self.path_times()))),
        ]
        # Dropout draws from PyTorch's global source; the run begins here.
        torch.manual_seed(seed)
        return Problem(model, TrainingLoss(train), records)

    def path_times(self) -> list[float]:
        """Return the steps at which the second stage is kept."""
        times = np.linspace(self.first, self.epochs, self.path_points).round()
        return [float(time) for time in np.unique(times)]

    def truth(self) -> xr.Dataset:
        """Return the names of the blocks whose curvature is read."""
        return xr.Dataset(attrs={"blocks": list(BLOCKS)})

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Return the plane of the path of the second stage, for seed 0 of every case."""
        loss = self.fixed_loss()
        # Small tensors are several times slower on two threads of a busy machine than on one.
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            planes = [self._plane(tree, case, loss) for case in self.cases()]
        finally:
            torch.set_num_threads(threads)
        two = {
            "path_a": [plane.a for plane in planes],
            "path_b": [plane.b for plane in planes],
            "path_loss": [plane.loss for plane in planes],
            "path_shadow": [plane.shadow for plane in planes],
            "off_plane": [plane.off_plane for plane in planes],
            "path_distance": [plane.distance for plane in planes],
        }
        surfaces = np.stack([plane.landscape.loss for plane in planes])
        return xr.Dataset(
            {
                **{name: (("kernel", "point"), np.stack(parts)) for name, parts in two.items()},
                "path_surface": (("kernel", "path_row", "path_column"), surfaces),
                "path_columns": (
                    ("kernel", "path_column"),
                    np.stack([plane.landscape.a for plane in planes]),
                ),
                "path_rows": (
                    ("kernel", "path_row"),
                    np.stack([plane.landscape.b for plane in planes]),
                ),
                "path_share": (
                    ("kernel", "component"),
                    np.stack([plane.share for plane in planes]),
                ),
                "path_step": ("point", self.path_times()),
            },
            attrs={"words": [plane.words for plane in planes]},
        )

    def _plane(self, tree: xr.DataTree, case: str, loss: FixedLoss) -> PathLandscape:
        model: KernelClassifier = self.task().model(case, 0)
        params = tree["params"].to_dataset()
        run = self.runs().index((case, 0))
        # The first snapshot is the start of training, which the path leaves out.
        path = path_of(params.isel(run=run, snapshot=slice(1, None)), model)
        return path_landscape(model, loss, path, points=self.grid, tolerance=TOLERANCE)

    def claims(self) -> tuple[Claim, ...]:
        """Return what the poster says of its surfaces, as numbers."""
        return _landscape_claims.claims(self)

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw surfaces, rays, spectra and the path."""
        return _landscape_figures.figures(self, tree)

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate curvature, roughness and the path."""
        return _landscape_tables.tables(self, tree)
