"""Images whose labels cannot be told from where the discs are.

Discs at the two ends of one snake are further apart on average than those of two snakes, and lie
otherwise in the window: at 16 x 16 pixels the distance alone tells 73 % of the labels, and with
labels balanced by distance the places of the discs still tell 67 %. So images are matched in pairs
of both labels whose discs lie at the same places, up to a mirror or a turn of the square and to
which disc is which, and then balanced within half a pixel of the discs' distance.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.tasks.pathfinder.images import LANES, Pathfinder, PathfinderImages

BIN = 0.5
"""Pixels along a bin of distances."""
WITHIN = 0.75
"""How far the discs of a pair may lie apart, in pixels over all four coordinates and distance."""
DISTANCE = 4.0
"""How much the distance of the discs counts there, beside a coordinate."""
NEAREST = 16
"""Images of the other label that an image may be paired with."""
FOURIER = 400
"""Random waves that :func:`places_accuracy` fits."""
RIDGE = 1e-2
"""Penalty of squared weights there, relative to the variance of a feature."""


def disc_distance(data: PathfinderImages) -> np.ndarray:
    """Return how far apart the two discs of each image are, in pixels."""
    first, second = data.truth.markers[:, 0], data.truth.markers[:, 1]
    return np.asarray(np.linalg.norm(first - second, axis=-1))


def balanced_rows(distance: np.ndarray, labels: np.ndarray, width: float = BIN) -> np.ndarray:
    """Return rows, in order, that hold both labels equally often in every bin of distances.

    Of the commoner label in a bin the first ones stay.

    Args:
        distance: of the discs of each image.
        labels: 0 or 1.
        width: of a bin.

    Raises:
        AttnscopeError: no bin holds both labels.

    Example:
        >>> balanced_rows(np.array([0.1, 0.2, 0.3, 0.7]), np.array([0, 1, 1, 1])).tolist()
        [0, 1]
    """
    bins = np.floor(distance / width).astype(np.int64)
    kept: list[np.ndarray] = []
    for number in np.unique(bins):
        here = np.flatnonzero(bins == number)
        apart, joined = here[labels[here] == 0], here[labels[here] == 1]
        count = min(len(apart), len(joined))
        kept += [apart[:count], joined[:count]]
    rows = np.sort(np.concatenate(kept)) if kept else np.empty(0, dtype=np.int64)
    if not rows.size:
        raise AttnscopeError(
            f"{len(labels):,} images have no two of different labels whose discs are as far apart, "
            f"to {width:g} pixels: expected more images."
        )
    return rows


def paired_rows(discs: np.ndarray, labels: np.ndarray, window: int) -> np.ndarray:
    """Return rows, in order, of images in pairs of both labels with discs at the same places.

    Nearest pairs are made first; an image without a partner is left out.

    Args:
        discs: centres ``(image, disc, xy)``.
        labels: 0 or 1.
        window: pixels along a side.

    Raises:
        AttnscopeError: there is no such pair.
    """
    from scipy.spatial import cKDTree

    apart = np.linalg.norm(discs[:, 0] - discs[:, 1], axis=-1)
    places = np.concatenate([_turned(discs - window / 2), DISTANCE * apart[:, None]], axis=1)
    sides = [np.flatnonzero(labels == label) for label in (0, 1)]
    kept: list[int] = []
    if all(side.size for side in sides):
        apart_rows, joined_rows = sides
        count = min(NEAREST, len(joined_rows))
        gaps, partner = cKDTree(places[joined_rows]).query(
            places[apart_rows], k=np.arange(1, count + 1), distance_upper_bound=WITHIN
        )
        row, column = np.nonzero(np.isfinite(gaps))
        order = np.argsort(gaps[row, column], kind="stable")
        taken = np.zeros(len(joined_rows), dtype=bool)
        done = np.zeros(len(apart_rows), dtype=bool)
        for one, other in zip(row[order], partner[row, column][order], strict=True):
            if not done[one] and not taken[other]:
                done[one] = taken[other] = True
                kept += [int(apart_rows[one]), int(joined_rows[other])]
    if not kept:
        raise AttnscopeError(
            f"{len(labels):,} images have no two of different labels with discs at the same "
            "places: expected more images."
        )
    return np.sort(np.array(kept))


def _turned(places: np.ndarray) -> np.ndarray:
    """Return places ``(image, disc, xy)`` about the centre in one of their sixteen equal forms.

    It is the one that lies furthest along a direction without any symmetry.
    """
    exchanged = [places, places[:, ::-1]]
    mirrored = [form for each in exchanged for form in (each, each[..., ::-1])]
    signs = [(x, y) for x in (1.0, -1.0) for y in (1.0, -1.0)]
    forms = [(form * np.array(sign)).reshape(len(places), 4) for form in mirrored for sign in signs]
    every = np.stack(forms, axis=1)
    best = (every @ np.array([1.0, 0.61, 0.37, 0.13])).argmax(axis=1)
    return np.asarray(every[np.arange(len(places)), best])


class BalancedSet:
    """Images of a seed, drawn at once, of which those are kept whose labels are balanced.

    Args:
        task: what images look like.
        count: how many are drawn; about half of them are kept.
        seed: of the images.
        by: ``"distance"`` of the discs, or their ``"places"`` as well.
    """

    def __init__(
        self, task: Pathfinder, count: int, seed: int, by: Literal["distance", "places"] = "places"
    ) -> None:
        if count < 1:
            raise AttnscopeError(f"count = {count}: expected 1 or more.")
        self.task, self.seed, self.drawn = task, seed, count
        images, labels, discs, apart = [], [], [], []
        for start in range(0, count, LANES):
            # What was drawn takes ten times the room of the pixels, so it is not kept.
            part = task.at(range(start, min(start + LANES, count)), seed)
            images.append(part.images.reshape(len(part), -1))
            labels.append(part.labels)
            discs.append(part.truth.markers)
            apart.append(disc_distance(part))
        every, gap, centres = (np.concatenate(part) for part in (labels, apart, discs))
        pairs = np.arange(count)
        if by == "places":
            pairs = paired_rows(centres, every, task.window)
        rows = pairs[balanced_rows(gap[pairs], every[pairs])]
        self._images, self._labels = np.concatenate(images)[rows], every[rows]
        self.distance, self.discs = gap[rows], centres[rows]

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return images as rows of pixels ``(image, pixel)``, and labels."""
        return self._images[rows], self._labels[rows]


def distance_accuracy(
    distance: np.ndarray, labels: np.ndarray, distance_2: np.ndarray, labels_2: np.ndarray
) -> float:
    """Return how often the commoner label of discs as far apart, to a pixel, is right.

    Args:
        distance: of the discs of images to learn from.
        labels: theirs.
        distance_2: of the discs of other images, which count.
        labels_2: theirs.
    """
    size = int(max(distance.max(), distance_2.max())) + 1
    lead = np.bincount(distance.astype(int), weights=2 * labels - 1, minlength=size)
    return float(((lead[distance_2.astype(int)] > 0) == (labels_2 == 1)).mean())


def places_accuracy(
    discs: np.ndarray, labels: np.ndarray, discs_2: np.ndarray, labels_2: np.ndarray, window: int
) -> float:
    """Return how often the places of both discs, without any contour, tell the label.

    Least squares on random waves cos(w·z + b) of z, the places of the two discs; the frequencies
    are normal with a wave length of about half a window. Training images count in both orders of
    their discs.

    Args:
        discs: centres ``(image, disc, xy)`` of images to learn from.
        labels: theirs.
        discs_2: of other images, which count.
        labels_2: theirs.
        window: pixels along a side.
    """
    source = np.random.default_rng(0)
    waves = source.normal(size=(4, FOURIER)) * (2 * np.pi / (window / 2) / 2)
    shifts = source.uniform(0, 2 * np.pi, FOURIER)

    def features(places: np.ndarray) -> np.ndarray:
        return np.cos(places.reshape(len(places), 4) @ waves + shifts)

    both = np.concatenate([discs, discs[:, ::-1]])
    seen, target = features(both), np.tile(2.0 * labels - 1, 2)
    mean = seen.mean(axis=0)
    square = (seen - mean).T @ (seen - mean) / len(seen) + RIDGE * np.eye(FOURIER)
    weights = np.linalg.solve(square, (seen - mean).T @ (target - target.mean()) / len(seen))
    guess = (features(discs_2) - mean) @ weights + (features(discs_2[:, ::-1]) - mean) @ weights
    return float(((guess + 2 * target.mean() > 0) == (labels_2 == 1)).mean())
