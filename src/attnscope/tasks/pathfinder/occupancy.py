"""Which places of many Pathfinder images are taken, looked up for all of them at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CELLS = 2
"""Cells of the grid along a pixel."""


@dataclass(frozen=True)
class Geometry:
    """What a place may hold.

    Args:
        window: pixels along a side.
        padding: pixels at the border that stay empty.
        length: length of a paddle.
        thickness: thickness of a paddle.
        margin: room around a paddle, on every side.
    """

    window: int
    padding: float
    length: float
    thickness: float
    margin: float

    @property
    def clearance(self) -> float:
        """Least distance of two centre lines: two margins and twice half a thickness.

        The gap between the paddles of one snake is two margins, so neighbours that do not belong
        together are never nearer than those that do.
        """
        return 2 * self.margin + self.thickness


class Occupancy:
    """How many strokes come near each cell, for many images ("lanes") side by side.

    A cell counts a stroke if some point of the cell may be nearer to it than the clearance, so a
    point in a cell of count zero is free for certain.
    """

    def __init__(self, geometry: Geometry, lanes: int) -> None:
        self.geometry = geometry
        reach = geometry.clearance + np.sqrt(0.5) / CELLS
        half = int(np.ceil((geometry.length / 2 + reach) * CELLS)) + 1
        self._square = reach**2
        self._pad = half + int(np.ceil((2 * geometry.length + 2 * geometry.margin) * CELLS))
        self._side = geometry.window * CELLS + 2 * self._pad
        self._counts = np.zeros((lanes, self._side**2), dtype=np.uint8)
        self._flat = self._counts.reshape(-1)
        x, y = (part.reshape(-1) for part in np.meshgrid(*2 * [np.arange(-half, half + 1)]))
        near = x**2 + y**2 <= half**2
        self._offsets = np.stack([x[near], y[near]])

    def clear(self, lanes: np.ndarray) -> None:
        """Empty some lanes."""
        self._counts[lanes] = 0

    def add(self, lanes: np.ndarray, strokes: np.ndarray) -> None:
        """Take the surroundings of one stroke ``(lane, end, xy)`` in each of some lanes."""
        self._flat[self._around(lanes, strokes)] += 1

    def remove(self, lanes: np.ndarray, strokes: np.ndarray) -> None:
        """Free what :meth:`add` took."""
        self._flat[self._around(lanes, strokes)] -= 1

    def taken(
        self, lanes: np.ndarray, points: np.ndarray, own: np.ndarray | None = None
    ) -> np.ndarray:
        """Return which points ``(lane, point, xy)`` are not free.

        Args:
            lanes: one lane for each row of points.
            points: places in pixels.
            own: the stroke ``(lane, end, xy)`` that the points continue, which does not count.
        """
        geometry = self.geometry
        low, high = geometry.padding, geometry.window - geometry.padding
        x, y = points[..., 0], points[..., 1]
        outside = (x < low) | (x > high) | (y < low) | (y > high)
        cells = np.floor(points * CELLS).astype(np.int64)
        at = np.clip(cells + self._pad, 0, self._side - 1)
        counts = self._flat[(lanes[:, None] * self._side + at[..., 1]) * self._side + at[..., 0]]
        if own is not None:
            counts = counts - self._near(cells[..., 0], cells[..., 1], own)
        return np.asarray(outside | (counts > 0))

    def _around(self, lanes: np.ndarray, strokes: np.ndarray) -> np.ndarray:
        """Return the cells near strokes, by their place in all lanes."""
        x, y = np.floor((strokes[:, 0] + strokes[:, 1]) * (CELLS / 2)).astype(np.int64).T[..., None]
        right, down = self._offsets
        near = self._near(x + right, y + down, strokes)
        corner = (lanes[:, None] * self._side + y + self._pad) * self._side + x + self._pad
        return np.asarray((corner + (down * self._side + right))[near])

    def _near(self, x: np.ndarray, y: np.ndarray, strokes: np.ndarray) -> np.ndarray:
        """Return whether cells ``(lane, cell)`` are near one stroke of each lane."""
        middle = (strokes[:, 0] + strokes[:, 1]) * (CELLS / 2) - 0.5
        along = (strokes[:, 1] - strokes[:, 0]) / self.geometry.length
        right = ((x - middle[:, :1]) / CELLS).astype(np.float32)
        down = ((y - middle[:, 1:]) / CELLS).astype(np.float32)
        cosine, sine = along.astype(np.float32).T[..., None]
        beyond = np.abs(right * cosine + down * sine) - np.float32(self.geometry.length / 2)
        beside = right * sine - down * cosine
        return np.maximum(beyond, 0) ** 2 + beside**2 < np.float32(self._square)


def distance(points: np.ndarray, strokes: np.ndarray) -> np.ndarray:
    """Return the distance of points ``(..., xy)`` from strokes ``(..., end, xy)``."""
    tail, along = strokes[..., 0, :], strokes[..., 1, :] - strokes[..., 0, :]
    x, y = points[..., 0] - tail[..., 0], points[..., 1] - tail[..., 1]
    square = (along**2).sum(axis=-1)
    part = np.clip((x * along[..., 0] + y * along[..., 1]) / square, 0.0, 1.0)
    return np.asarray(np.hypot(x - part * along[..., 0], y - part * along[..., 1]))
