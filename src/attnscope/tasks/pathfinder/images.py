"""Pathfinder: are two discs on the same contour? Images drawn here, with their ground truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError
from attnscope.tasks.pathfinder.drawing import draw
from attnscope.tasks.pathfinder.occupancy import Geometry, distance
from attnscope.tasks.pathfinder.snakes import Growth, grow

LANES = 1024
"""Images that grow side by side; fewer cost more time for each."""
DRAWN = 32
"""Window that the published parameters are for."""
FINE = 8
"""Places along a pixel at which :func:`check_labels` looks."""


@dataclass(frozen=True, eq=False)
class PathfinderTruth:
    """What was drawn. Places are (x, y) in pixels from the upper left corner.

    Args:
        snakes: both target snakes, ``(image, snake, paddle, end, xy)``.
        distractors: ``(image, distractor, paddle, end, xy)``; NaN where none found room.
        markers: centres of the two discs, ``(image, disc, xy)``: an origin tip, a terminal tip.
        marked: the snake that each disc sits on, ``(image, disc)``.
    """

    snakes: np.ndarray
    distractors: np.ndarray
    markers: np.ndarray
    marked: np.ndarray

    @property
    def tips(self) -> np.ndarray:
        """Origin and terminal tip of both snakes, ``(image, snake, tip, xy)``."""
        return np.stack([self.snakes[:, :, 0, 0], self.snakes[:, :, -1, 1]], axis=2)

    def __getitem__(self, rows: np.ndarray) -> PathfinderTruth:
        return PathfinderTruth(*(getattr(self, field.name)[rows] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class PathfinderImages:
    """Images, their labels (1: both discs on one snake) and what was drawn."""

    images: np.ndarray
    labels: np.ndarray
    truth: PathfinderTruth

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class Pathfinder:
    """Two snakes of short strokes, two discs on their tips, and distractors.

    The construction of Linsley et al. (2018) with the parameters that the Long Range Arena gives
    for 32 x 32 pixels. Two target snakes start ``seed_distance`` apart and grow by turns, paddle
    by paddle; a paddle turns by an angle a with probability proportional to
    cos²(continuity a) and keeps clear of all others; if one finds no room the pair starts again.
    Discs sit on the origin tip and the terminal tip of one snake (label 1), or on the origin tip
    of one and the terminal tip of the other (label 0). Shorter snakes distract.

    Departures from the published generator: turns are in steps of 5°, not by pixels on a circle,
    and ends are not rounded to pixels; what is free is decided on half pixels.

    In a window of w pixels what is not given scales: ``seed_distance`` with w / 32 (7 pixels at
    32, never below a paddle and its gap), the number of distractors with its square (20 paddles
    at 32). Paddles, gaps and discs keep their size, for little is left of a stroke below two
    pixels, so a contour must be shorter in a small window: 14 paddles fit into 32 pixels, 5 into
    16 and 3 into 12.

    Args:
        window: pixels along a side.
        contour_length: paddles of a target snake: 6 is easy, 9 intermediate, 14 hard.
        distractor_length: paddles of a distractor; a third of the contour unless given.
        distractors: number of distractors; as many as 20 (w / 32)² paddles make unless given.
        seed_distance: pixels between the two origin tips; 7 w / 32 unless given, at least 4.
        continuity: how straight snakes are.
        paddle_length: of a stroke, in pixels.
        paddle_thickness: of a stroke, in pixels.
        paddle_margin: room around a stroke; the gap between two of one snake is twice this.
        marker_radius: of a disc, in pixels.
        padding: pixels at the border that stay empty.
        antialias_scale: strokes are drawn so many times larger, then reduced.
        contrast: snake contrast × paddle contrast, 2 × 0.75.
    """

    window: int = 32
    contour_length: int = 14
    distractor_length: int | None = None
    distractors: int | None = None
    seed_distance: float | None = None
    continuity: float = 1.0
    paddle_length: float = 2.0
    paddle_thickness: float = 0.5
    paddle_margin: float = 1.0
    marker_radius: float = 1.5
    padding: float = 1.0
    antialias_scale: int = 2
    contrast: float = 1.5

    classes = ("apart", "connected")
    vocabulary = 256
    """Grey values."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, least in (("window", 8), ("contour_length", 1), ("antialias_scale", 1)):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        for name, least in (("distractor_length", 1), ("distractors", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise AttnscopeError(f"{name} = {value}: expected {least} or more.")
        for name in (
            "continuity",
            "paddle_length",
            "paddle_thickness",
            "paddle_margin",
            "marker_radius",
            "contrast",
        ):
            if not 0 < getattr(self, name) < math.inf:
                raise AttnscopeError(
                    f"{name} = {getattr(self, name)}: expected a finite number above 0."
                )
        if not 0 <= 2 * self.padding < self.window:
            raise AttnscopeError(
                f"padding = {self.padding}: expected 0 or more and less than half of window = "
                f"{self.window}."
            )
        if self.seed_distance is not None and not 0 < self.seed_distance < self.window / 2:
            raise AttnscopeError(
                f"seed_distance = {self.seed_distance}: expected more than 0 and less than half of "
                f"window = {self.window}."
            )

    @property
    def length(self) -> int:
        """Pixels of an image, which are the tokens of a sequence."""
        return self.window**2

    def sample(self, count: int, seed: int) -> PathfinderImages:
        """Draw images 0 to ``count - 1`` of a seed."""
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 or more.")
        return self.at(range(count), seed)

    def at(self, indices: Sequence[int] | np.ndarray, seed: int) -> PathfinderImages:
        """Draw images of a seed by their number; an image does not depend on the others."""
        numbers = np.asarray(indices, dtype=np.int64)
        parts = [
            self._draw(numbers[start : start + LANES], seed)
            for start in range(0, len(numbers), LANES)
        ]
        return PathfinderImages(
            np.concatenate([part.images for part in parts]),
            np.concatenate([part.labels for part in parts]),
            PathfinderTruth(
                *(
                    np.concatenate([getattr(part.truth, field.name) for part in parts])
                    for field in fields(PathfinderTruth)
                )
            ),
        )

    def _draw(self, numbers: np.ndarray, seed: int) -> PathfinderImages:
        sources = [np.random.default_rng([seed, number]) for number in numbers.tolist()]
        lots = np.stack([source.integers(2, size=2) for source in sources])
        labels, origin = lots[:, 0], lots[:, 1]
        snakes, distractors = grow(self._growth(), sources)
        marked = np.stack([origin, np.where(labels == 1, origin, 1 - origin)], axis=1)
        rows = np.arange(len(numbers))
        markers = np.stack([snakes[rows, marked[:, 0], 0, 0], snakes[rows, marked[:, 1], -1, 1]], 1)
        truth = PathfinderTruth(snakes, distractors, markers, marked)
        images = draw(
            strokes(truth),
            markers,
            window=self.window,
            thickness=self.paddle_thickness,
            radius=self.marker_radius,
            scale=self.antialias_scale,
            contrast=self.contrast,
        )
        return PathfinderImages(images, labels, truth)

    def _growth(self) -> Growth:
        scale = self.window / DRAWN
        length = self.distractor_length or max(1, self.contour_length // 3)
        count = self.distractors
        apart = max(7 * scale, self.paddle_length + 2 * self.paddle_margin)
        return Growth(
            Geometry(
                self.window,
                self.padding,
                self.paddle_length,
                self.paddle_thickness,
                self.paddle_margin,
            ),
            apart if self.seed_distance is None else self.seed_distance,
            self.continuity,
            self.contour_length,
            length,
            int(20 * scale**2) // length if count is None else count,
        )


class PathfinderSet:
    """A fixed set of images of which only those are drawn that are asked for, each once.

    Args:
        task: what images look like.
        count: number of images.
        seed: of the images.
    """

    def __init__(self, task: Pathfinder, count: int, seed: int) -> None:
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 or more.")
        self.task, self.seed = task, seed
        self._images = np.zeros((count, task.length), dtype=np.uint8)
        self._labels = np.zeros(count, dtype=np.int64)
        self._drawn = np.zeros(count, dtype=bool)

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return images as rows of pixels ``(image, pixel)``, and labels."""
        missing = np.unique(rows[~self._drawn[rows]])
        if missing.size:
            # Many at once cost little more than a few, so some that come later are drawn as well.
            self._drawn[missing] = True
            later = np.flatnonzero(~self._drawn)[: max(0, LANES - len(missing))]
            self._drawn[later] = True
            fresh = np.concatenate([missing, later])
            made = self.task.at(fresh, self.seed)
            self._images[fresh] = made.images.reshape(len(fresh), -1)
            self._labels[fresh] = made.labels
        return self._images[rows], self._labels[rows]


def strokes(truth: PathfinderTruth) -> np.ndarray:
    """Return all strokes of all snakes, ``(image, stroke, end, xy)``."""
    count = len(truth.snakes)
    return np.concatenate(
        [truth.snakes.reshape(count, -1, 2, 2), truth.distractors.reshape(count, -1, 2, 2)], axis=1
    )


def check_labels(task: Pathfinder, data: PathfinderImages) -> np.ndarray:
    """Return for which images a flood fill agrees with the label.

    All strokes, distractors too, are drawn eight times larger and so thick that they bridge the
    gaps within a snake (two margins) but not those between snakes (two margins and a thickness).
    Whatever the first disc's centre is connected to is flooded; the label is 1 if and only if
    that holds the second disc's centre. Which snake a stroke belongs to is not used.
    """
    from scipy import ndimage

    side = task.window * FINE
    radius = task.paddle_margin + task.paddle_thickness / 4
    around = np.arange(-(reach := int((task.paddle_length / 2 + radius) * FINE) + 2), reach + 1)
    offsets = np.stack(np.meshgrid(around, around), axis=-1)
    every = strokes(data.truth)
    agree = []
    for lines, discs, label in zip(every, data.truth.markers, data.labels, strict=True):
        thick = np.zeros((side, side), dtype=bool)
        for line in lines[np.isfinite(lines[:, 0, 0])]:
            places = np.floor(line.mean(axis=0) * FINE).astype(np.int64) + offsets
            near = distance((places + 0.5) / FINE, line) < radius
            x, y = places[near & ((places >= 0) & (places < side)).all(axis=-1)].T
            thick[y, x] = True
        parts, _ = ndimage.label(thick)
        (x1, y1), (x2, y2) = np.floor(discs * FINE).astype(np.int64)
        same = parts[y1, x1] == parts[y2, x2] and parts[y1, x1] > 0
        agree.append(same == bool(label))
    return np.array(agree)


def sample_sheet(
    path: str | Path, task: Pathfinder | None = None, *, seed: int = 0, rows: int = 4, zoom: int = 6
) -> Path:
    """Write a PNG with samples: columns of label 0 on the left, of label 1 on the right.

    Args:
        path: the file to write.
        task: what images look like; the published 32 x 32 unless given.
        seed: of the images.
        rows: rows of the sheet, of four images of each label.
        zoom: size of a pixel.
    """
    from matplotlib.image import imsave

    task = Pathfinder() if task is None else task
    data = task.sample(16 * rows, seed)
    gap, blocks = 255, []
    for label in (0, 1):
        images = data.images[data.labels == label][: 4 * rows]
        framed = np.pad(images, ((0, 0), (1, 1), (1, 1)), constant_values=gap)
        framed = np.concatenate([framed, np.zeros_like(framed)])[: 4 * rows]
        height, width = framed.shape[1:]
        grid = framed.reshape(rows, 4, height, width).transpose(0, 2, 1, 3)
        blocks.append(grid.reshape(rows * height, 4 * width))
    between = np.full((len(blocks[0]), 4), gap, dtype=np.uint8)
    sheet = np.concatenate([blocks[0], between, blocks[1]], axis=1)
    large = sheet.repeat(zoom, axis=0).repeat(zoom, axis=1)
    imsave(str(path), large, cmap="gray", vmin=0, vmax=255)
    return Path(path)
