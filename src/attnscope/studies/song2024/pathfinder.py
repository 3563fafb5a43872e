"""Softmax and Gaussian attention learn whether a contour joins two discs (Pathfinder)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from attnscope.bounds import Count
from attnscope.engines import Adam
from attnscope.report import Figure, Heat, Line, Mark, Panel, Table
from attnscope.studies.song2024._training import CLIP, EPS, KernelTraining, Published
from attnscope.tasks.pathfinder import (
    Pathfinder,
    PathfinderImages,
    PathfinderSet,
    check_labels,
)
from attnscope.tasks.sequence_rows import ImageRows, Sequences
from attnscope.trajectory import Readings

TRAIN, TEST, CHECK = range(3)
"""Seeds of the images to learn from, of held-out ones, and of those that are checked."""
CHECKED = 400
"""Images whose labels are checked, and whose discs are measured."""
SHOWN = 4
"""Images of each label that are shown."""


@dataclass(frozen=True)
class PathfinderStudy(KernelTraining):
    """A two-layer transformer on the pixels of Pathfinder images, with either kernel.

    Skyformer's configuration: 32 x 32 pixels and contours of 14 paddles, 160,000 images, learning
    rate 2e-4, 312 steps of warm-up, batches of 128. Images are drawn here, each when it is first
    needed. Every pixel is a token; the released code takes black ones for padding.
    """

    training: Adam = Adam(rate=2e-4, steps=50_000, batch=128, eps=EPS, clip=CLIP, warmup=312)
    last: Count = 20_000
    """Held-out images that are evaluated in the end."""
    task: Pathfinder = Pathfinder()
    train: Count = 160_000
    """Images to learn from."""
    test: Count = 20_000
    """Held-out images."""

    quick = {
        "seeds": 3,
        "steps": 300,
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
    published = Published(
        softmax=0.6526,
        gaussian=0.7073,
        task="whether a contour joins two discs",
        sequences="images",
        bag="a bag of pixels",
        tokens="grey values",
        counting="counts of grey values say nothing of the label, so this fails where neither "
        "kernel has left chance.",
    )
    counted = 4000

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return the training images and the others."""
        train, test = _images(self.task, self.train, TRAIN), _images(self.task, self.test, TEST)
        return ImageRows(train), ImageRows(test)

    def shape(self) -> tuple[int, int]:
        """Return the number of grey values and of pixels."""
        return self.task.vocabulary, self.task.length

    def scale_words(self) -> str:
        """Say how large images are and how long runs."""
        task, steps = self.task, self.training.steps
        return (
            f"Images are {task.window} x {task.window} with contours of {task.contour_length} "
            f"paddles, runs have {steps:,} steps."
        )

    def truth(self) -> dict[str, object]:
        """Return some images with what was drawn, and whether a flood fill agrees with labels."""
        drawn = self.task.sample(CHECKED, CHECK)
        shown = np.concatenate([np.flatnonzero(drawn.labels == label)[:SHOWN] for label in (0, 1)])
        found = np.isfinite(drawn.truth.distractors[:, :, 0, 0, 0]).sum(axis=1)
        contours = ("example", "snake", "paddle", "end", "xy")
        return {
            "agrees": ("image", check_labels(self.task, drawn)),
            "label": ("image", drawn.labels),
            "disc_distance": ("image", disc_distance(drawn), {"unit": "pixels"}),
            "distractors": ("image", found),
            "shown": (("example", "row", "column"), drawn.images[shown]),
            "shown_label": ("example", drawn.labels[shown]),
            "shown_snakes": (contours, drawn.truth.snakes[shown], {"unit": "pixels"}),
            "shown_discs": (("example", "disc", "xy"), drawn.truth.markers[shown]),
        }

    def theory(self, run: Readings) -> dict[str, object]:
        """Return what counts of grey values, and the distance of the discs alone, can tell."""
        fitted, tested = (self.task.sample(2 * CHECKED, seed) for seed in (TRAIN, TEST))
        meaning = "accuracy of the commoner label among discs as far apart"
        reached = distance_accuracy(fitted, tested)
        return {**super().theory(run), "distance_accuracy": ((), reached, {"meaning": meaning})}

    def baselines(self, run: Readings) -> dict[str, float]:
        """Return the accuracies of counting, and of the distance between the discs."""
        distance = float(run.theory.distance_accuracy)
        return {**super().baselines(run), "distance of the discs alone": distance}

    def figures(self, run: Readings) -> list[Figure]:
        """Draw the curves, and images of both labels, with the contours of the last of each."""
        window, data, panels = self.task.window, run.data, []
        edges = np.arange(window + 1, dtype=float)
        for label, title in ((0, "label 0, apart"), (1, "label 1, connected")):
            examples = np.flatnonzero(data.shown_label == label)
            for example in examples:
                # Rows of an image go down, those of a heat map up.
                image = data.shown[example, ::-1].astype(float).to_numpy()
                marks: list[Mark] = [Heat(edges, edges, image, "grey value")]
                if example == examples[-1]:
                    for number, snake in enumerate(data.shown_snakes[example].to_numpy()):
                        x, y = snake.reshape(-1, 2).T
                        marks.append(Line(x, window - y, f"target contour {number + 1}", number))
                panels.append(Panel(title, "x (pixels)", "y (pixels)", tuple(marks)))
        samples = Figure(
            "samples",
            "Pathfinder images",
            f"Images of {window} x {window} pixels with contours of {self.task.contour_length} "
            "paddles: do the two discs sit on the same contour? The last image of each label "
            "shows the two target contours as they were drawn; what is left are distractors.",
            tuple(panels),
            columns=4,
        )
        return [*super().figures(run), samples]

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate the end of the runs, the check of the labels, and what the discs alone tell."""
        label, gap, window = run.data.label, run.data.disc_distance, self.task.window
        apart = [round(float(gap[label == value].mean()), 2) for value in (0, 1)]
        rows = {
            "images checked": len(label),
            "flood fill from disc to disc agrees with the label": int(run.data.agrees.sum()),
            "of label 1 (%)": round(100 * float((label == 1).mean()), 1),
            "distance of the discs, label 0 (pixels)": apart[0],
            "distance of the discs, label 1 (pixels)": apart[1],
            "distractors that found room": round(float(run.data.distractors.mean()), 2),
        }
        title = f"Images of {window} x {window} pixels, contours of {self.task.contour_length} "
        images = Table("images", f"{title}paddles", ("what", "value"), tuple(rows.items()))
        return [*super().tables(run), images]


def disc_distance(data: PathfinderImages) -> np.ndarray:
    """Return how far apart the two discs of each image are, in pixels."""
    first, second = data.truth.markers[:, 0], data.truth.markers[:, 1]
    return np.asarray(np.linalg.norm(first - second, axis=-1))


def distance_accuracy(fitted: PathfinderImages, tested: PathfinderImages) -> float:
    """Return how often the commoner label of discs as far apart, to a pixel, is right."""
    apart, balance = disc_distance(fitted).astype(int), Counter[int]()
    for distance, label in zip(apart.tolist(), fitted.labels, strict=True):
        balance[distance] += 1 if label else -1
    guess = [balance[distance] > 0 for distance in disc_distance(tested).astype(int).tolist()]
    return float((np.array(guess) == (tested.labels == 1)).mean())


@lru_cache(maxsize=4)
def _images(task: Pathfinder, count: int, seed: int) -> PathfinderSet:
    return PathfinderSet(task, count, seed)
