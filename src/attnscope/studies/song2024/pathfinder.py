"""Softmax and Gaussian attention learn whether a contour joins two discs (Pathfinder)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Literal, NamedTuple

import numpy as np
from torch import Tensor, nn

from attnscope.bounds import Bounds, Count
from attnscope.engines import Adam
from attnscope.models.stems import Patches, check_patch
from attnscope.report import Figure, Heat, Line, Mark, Panel, Table
from attnscope.studies.song2024._training import CLIP, EPS, KernelTraining, Published
from attnscope.tasks.pathfinder import (
    BalancedSet,
    Pathfinder,
    PathfinderSet,
    check_labels,
    disc_distance,
    distance_accuracy,
    places_accuracy,
)
from attnscope.tasks.sequence_rows import ImageRows, Mirrors, Sequences
from attnscope.trajectory import Readings

Images = BalancedSet | PathfinderSet
TRAIN, TEST, CHECK = range(3)
"""Seeds of the images to learn from, of held-out ones, and of those that are checked."""
CHECKED = 400
"""Images whose labels are checked, and whose discs are measured."""
SHOWN = 4
"""Images of each label that are shown."""
LEARNED = {
    "seeds": 3,
    "balanced": "places",
    "patch": 2,
    "margin": 1,
    "mirrored": True,
    "pooling": "max",
    "dropout": 0.0,
    "batch": 64,
    "cycle": False,
    "decay": 0.01,
    "train": 60_000,
}
"""What is learned within minutes to an hour; docs/song2024.md lists what was not."""


@dataclass(frozen=True)
class PathfinderStudy(KernelTraining):
    """A two-layer transformer on the pixels of Pathfinder images, with either kernel.

    Skyformer's configuration: 32 x 32 pixels and contours of 14 paddles, 160,000 images, learning
    rate 2e-4, 312 steps of warm-up, batches of 128. Images are drawn here, each when it is first
    needed. Every pixel is a token; the released code takes black ones for padding.

    At the smaller scales held-out images come in pairs of both labels with discs at the same
    places, so that neither the distance nor the places of the discs tell anything. Tokens are
    patches of 2 x 2 pixels with learned rows and columns; the head sees the largest of each entry
    over all tokens, and images are mirrored and turned at random. At ``quick`` images to learn from
    come in pairs too, and tokens see one pixel around their patch. At ``desk`` they do not, so that
    a contour can only be followed by attention, and images to learn from are balanced by distance
    alone: what the places of their discs still tell is learned first.
    """

    training: Adam = Adam(rate=2e-4, steps=50_000, batch=128, eps=EPS, clip=CLIP, warmup=312)
    last: Count = 20_000
    """Held-out images that are evaluated in the end."""
    task: Pathfinder = Pathfinder()
    train: Count = 160_000
    """Images to learn from; if balanced, those that are drawn, of which half are kept."""
    test: Count = 20_000
    """Held-out images; if balanced, those that are drawn, of which a third are kept."""
    balanced: Literal["no", "distance", "places"] = "no"
    """By what labels of training images are balanced: how far apart the discs are, or where they
    are as well. Held-out images then come in pairs with discs at the same places."""
    patch: Count | None = None
    """Pixels along a side of the patches that are tokens; every pixel by its grey value unless
    given."""
    margin: Annotated[int, Bounds(0)] = 0
    """Pixels around a patch that its token sees as well."""
    mirrored: bool = False
    """Show every image in one of its eight mirrored and turned forms, drawn at every step."""

    quick = {
        **LEARNED,
        "window": 12,
        "contour_length": 2,
        "rate": 1e-3,
        "steps": 2000,
        "points": 21,
        "warmup": 500,
        "held_out": 2000,
        "last": 2000,
        "probe": 128,
        "test": 10_000,
    }
    desk = {
        **LEARNED,
        "balanced": "distance",
        "margin": 0,
        "window": 16,
        "contour_length": 3,
        "distractors": 2,
        "rate": 7e-4,
        "steps": 10_000,
        "points": 21,
        "warmup": 500,
        "fall": 8500,
        "held_out": 3000,
        "last": 4000,
        "probe": 512,
        "test": 12_000,
    }
    carried = 15.0
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

    def check(self) -> None:
        """Check that patches tile an image."""
        super().check()
        if self.patch is not None:
            check_patch(self.task.window, self.patch)

    def sequences(self) -> tuple[Sequences, Sequences]:
        """Return the training images and the others."""
        train, test = self._sets()
        return ImageRows(train), ImageRows(test)

    def _sets(self) -> tuple[Images, Images]:
        held_out = "no" if self.balanced == "no" else "places"
        return (
            _images(self.task, self.train, TRAIN, self.balanced),
            _images(self.task, self.test, TEST, held_out),
        )

    def stem(self) -> Callable[[int], nn.Module] | None:
        """Return what makes tokens of patches, if they are tokens."""
        if self.patch is None:
            return None
        return partial(Patches, self.task.window, self.patch, margin=self.margin)

    def vary(self) -> Callable[[Tensor], Tensor] | None:
        """Return the mirrors and turns of a square, if they are asked for."""
        return Mirrors(self.task.window) if self.mirrored else None

    def shape(self) -> tuple[int, int]:
        """Return the number of grey values and of pixels."""
        return self.task.vocabulary, self.task.length

    def scale_words(self) -> str:
        """Say how large images are and how long runs."""
        task, steps = self.task, self.training.steps
        pairs = " Where the discs are tells nothing of the label of held-out images."
        return (
            f"Images are {task.window} x {task.window} with contours of {task.contour_length} "
            f"paddles, runs have {steps:,} steps." + ("" if self.balanced == "no" else pairs)
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
        fitted, tested = (_discs(images) for images in self._sets())
        far = distance_accuracy(fitted.distance, fitted.labels, tested.distance, tested.labels)
        places = places_accuracy(
            fitted.centres, fitted.labels, tested.centres, tested.labels, self.task.window
        )
        return {
            **super().theory(run),
            "distance_accuracy": (
                (),
                far,
                {"meaning": "accuracy of the commoner label among discs as far apart"},
            ),
            "places_accuracy": (
                (),
                places,
                {"meaning": "accuracy of least squares on waves of the places of both discs"},
            ),
        }

    def baselines(self, run: Readings) -> dict[str, float]:
        """Return the accuracies of counting, and of the distance between the discs."""
        return {
            **super().baselines(run),
            "distance of the discs alone": float(run.theory.distance_accuracy),
            "places of the discs alone": float(run.theory.places_accuracy),
        }

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


class Discs(NamedTuple):
    """How far apart the discs of some images are, where they are, and the labels."""

    distance: np.ndarray
    centres: np.ndarray
    labels: np.ndarray


def _discs(images: Images) -> Discs:
    """Return the discs of a balanced set; of one that is drawn on demand those of a sample."""
    if isinstance(images, BalancedSet):
        return Discs(images.distance, images.discs, images[np.arange(len(images))][1])
    drawn = images.task.sample(10 * CHECKED, images.seed)
    return Discs(disc_distance(drawn), drawn.truth.markers, drawn.labels)


@lru_cache(maxsize=4)
def _images(task: Pathfinder, count: int, seed: int, balanced: str) -> Images:
    if balanced == "no":
        return PathfinderSet(task, count, seed)
    return BalancedSet(task, count, seed, "places" if balanced == "places" else "distance")
