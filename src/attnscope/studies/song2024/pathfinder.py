"""Softmax and Gaussian attention learn whether a contour joins two discs (Pathfinder)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from attnscope.errors import AttnscopeError
from attnscope.report.figure import Figure
from attnscope.report.page import Table
from attnscope.studies.song2024 import _pathfinder_figures, _pathfinder_tables
from attnscope.studies.song2024._bag_of_tokens import bag_accuracy
from attnscope.studies.song2024._training import KernelTraining
from attnscope.studies.song2024._training_data import ImageRows, Sequences, fixed_rows
from attnscope.studies.song2024._training_names import Published
from attnscope.tasks.pathfinder import Pathfinder as Images
from attnscope.tasks.pathfinder import PathfinderImages, PathfinderSet, check_labels

TRAIN, TEST, LOOK = range(3)
"""Seeds of the images to learn from, of those not, and of those that are looked at."""
COUNTED = 4000
"""Training images on which the bag of pixels is fitted."""
CHECKED = 400
"""Images whose labels are checked, and whose discs are measured."""
SHOWN = 4
"""Images of each label that are shown."""


@dataclass(frozen=True)
class Pathfinder(KernelTraining):
    """A two-layer transformer on the pixels of Pathfinder images, with either kernel.

    Skyformer's configuration: 32 x 32 pixels and contours of 14 paddles, 160,000 images, learning
    rate 2e-4, 312 steps of warm-up, batches of 128. Images are drawn here, each when it is first
    needed. Every pixel is a token; the released code takes black ones for padding.
    """

    rate: float = 2e-4
    """Largest learning rate of the cycle."""
    warmup: int = 312
    """Steps until it is reached."""
    batch: int = 128
    """Images in a step."""
    last: int = 20_000
    """Unseen images that are looked at in the end."""
    window: int = 32
    """Pixels along a side."""
    contour_length: int = 14
    """Paddles of a contour."""
    train: int = 160_000
    """Images to learn from."""
    test: int = 20_000
    """Unseen images."""

    quick: ClassVar[dict[str, Any]] = {
        "seeds": 3,
        "epochs": 300,
        "points": 7,
        "rate": 1e-3,
        "warmup": 30,
        "batch": 32,
        "dropout": 0.0,
        "held_out": 400,
        "last": 2000,
        "probe": 128,
        "window": 10,
        "contour_length": 2,
        "train": 10_000,
        "test": 2000,
    }
    published: ClassVar[Published] = Published(
        0.6526,
        0.7073,
        "whether a contour joins two discs",
        "images",
        "a bag of pixels",
    )
    counting: ClassVar[str] = (
        "counts of grey values say nothing of the label, so this fails where neither kernel has "
        "left chance."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.images()
        for name in ("train", "test"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")

    def images(self) -> Images:
        """Return what images look like."""
        return Images(window=self.window, contour_length=self.contour_length)

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return the training images and the others."""
        task = self.images()
        return (
            ImageRows(_images(task, self.train, TRAIN)),
            ImageRows(_images(task, self.test, TEST)),
        )

    def shape(self) -> tuple[int, int]:
        """Return the number of grey values and of pixels."""
        task = self.images()
        return task.vocabulary, task.length

    def scale_words(self) -> str:
        """Say how large images are and how long runs."""
        return (
            f"Images are {self.window} x {self.window} with contours of {self.contour_length} "
            f"paddles, runs have {self.epochs:,} steps."
        )

    def truth(self) -> xr.Dataset:
        """Return some images with what was drawn, and whether a flood fill agrees with labels."""
        task = self.images()
        look = task.sample(CHECKED, LOOK)
        gap = np.linalg.norm(look.truth.markers[:, 0] - look.truth.markers[:, 1], axis=-1)
        shown = np.concatenate([np.flatnonzero(look.labels == label)[:SHOWN] for label in (0, 1)])
        found = np.isfinite(look.truth.distractors[:, :, 0, 0, 0]).sum(axis=1)
        return xr.Dataset(
            {
                "agrees": ("image", check_labels(task, look)),
                "label": ("image", look.labels),
                "disc_distance": ("image", gap, {"unit": "pixels"}),
                "distractors": ("image", found),
                "shown": (("example", "row", "column"), look.images[shown]),
                "shown_label": ("example", look.labels[shown]),
                "shown_snakes": (
                    ("example", "snake", "paddle", "end", "xy"),
                    look.truth.snakes[shown],
                    {"unit": "pixels"},
                ),
                "shown_discs": (("example", "disc", "xy"), look.truth.markers[shown]),
            }
        )

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Return what counts of grey values, and the distance of the discs alone, can tell."""
        train, test = self.sequences()
        vocabulary, _ = self.shape()
        counted = fixed_rows(train, COUNTED)
        reached = bag_accuracy(train, test, counted, fixed_rows(test, self.last), vocabulary)
        fitted, tested = (self.images().sample(2 * CHECKED, seed) for seed in (TRAIN, TEST))
        return xr.Dataset(
            {
                "bag_accuracy": (
                    (),
                    reached,
                    {"meaning": "test accuracy of least squares on counts of grey values"},
                ),
                "distance_accuracy": (
                    (),
                    distance_accuracy(fitted, tested),
                    {"meaning": "accuracy of the commoner label among discs as far apart"},
                ),
            }
        )

    def baselines(self, tree: xr.DataTree) -> list[tuple[str, float]]:
        """Return the accuracy of the distance between the discs."""
        return [("distance of the discs alone", float(tree["theory/distance_accuracy"]))]

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw the curves, and some images."""
        return [*super().figures(tree), _pathfinder_figures.samples(self, tree)]

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the end of the runs, and the check of the labels."""
        return [*super().tables(tree), _pathfinder_tables.images(self, tree)]


def distance_accuracy(fitted: PathfinderImages, tested: PathfinderImages) -> float:
    """Return how often the commoner label of discs as far apart, to a pixel, is right."""
    counts: dict[int, int] = {}
    for apart, label in zip(_apart(fitted), fitted.labels, strict=True):
        counts[apart] = counts.get(apart, 0) + (1 if label else -1)
    guess = np.array([counts.get(apart, 0) > 0 for apart in _apart(tested)])
    return float((guess == (tested.labels == 1)).mean())


def _apart(data: PathfinderImages) -> list[int]:
    gap = np.linalg.norm(data.truth.markers[:, 0] - data.truth.markers[:, 1], axis=-1)
    whole: list[int] = np.floor(gap).astype(int).tolist()
    return whole


@lru_cache(maxsize=4)
def _images(task: Images, count: int, seed: int) -> PathfinderSet:
    return PathfinderSet(task, count, seed)
