"""Paddles and discs as grey pixels."""

from __future__ import annotations

import numpy as np

from attnscope.tasks.pathfinder.occupancy import distance

LOBES = 3
"""Half-width of the Lanczos kernel, in pixels of the reduced image."""


def draw(
    strokes: np.ndarray,
    markers: np.ndarray,
    *,
    window: int,
    thickness: float,
    radius: float,
    scale: int,
    contrast: float,
) -> np.ndarray:
    """Draw images; overlapping things combine by their maximum.

    Args:
        strokes: ``(image, stroke, end, xy)`` in pixels; NaN where there is none.
        markers: centres of discs, ``(image, disc, xy)``.
        window: pixels along a side.
        thickness: of a stroke, in pixels.
        radius: of a disc, in pixels.
        scale: strokes are drawn so many times larger and then reduced by a Lanczos kernel.
        contrast: what the brightness of strokes is multiplied by.

    Returns:
        Shape ``(image, row, column)``, 0 for black and 255 for white.
    """
    large = np.zeros((len(strokes), window * scale, window * scale))
    for number in range(strokes.shape[1]):
        _stroke(large, strokes[:, number] * scale, thickness * scale)
    reduce = lanczos(window, scale)
    paths = contrast * (reduce @ large @ reduce.T)
    centres = np.arange(window) + 0.5
    pixels = np.stack(np.meshgrid(centres, centres), axis=-1)
    gap = np.linalg.norm(pixels - markers[:, :, None, None], axis=-1)
    discs = np.clip(radius + 0.5 - gap, 0, 1).max(axis=1)
    grey = np.clip(np.maximum(paths, discs), 0, 1)
    return np.rint(255 * grey).astype(np.uint8)


def _stroke(large: np.ndarray, strokes: np.ndarray, thickness: float) -> None:
    """Draw one stroke of each image where it is, leaving the rest alone."""
    there = np.flatnonzero(np.isfinite(strokes[:, 0, 0]))
    if not there.size:
        return
    strokes = strokes[there]
    reach = np.abs(strokes[:, 1] - strokes[:, 0]).max() / 2 + thickness / 2 + 1
    around = np.arange(-int(np.ceil(reach)), int(np.ceil(reach)) + 1)
    offsets = np.stack(np.meshgrid(around, around), axis=-1).reshape(-1, 2)
    pixels = np.floor(strokes.mean(axis=1)).astype(np.int64)[:, None] + offsets
    cover = np.clip(thickness / 2 + 0.5 - distance(pixels + 0.5, strokes[:, None]), 0, 1)
    inside = ((pixels >= 0) & (pixels < large.shape[1])).all(axis=-1)
    image = np.broadcast_to(there[:, None], inside.shape)[inside]
    column, row = pixels[inside].T
    large[image, row, column] = np.maximum(large[image, row, column], cover[inside])


def lanczos(window: int, scale: int) -> np.ndarray:
    """Return the matrix that reduces ``window * scale`` pixels to ``window``.

    Row i holds sinc(d) sinc(d / 3) at the distances d, in reduced pixels, from the centre of pixel
    i, divided by their sum.
    """
    large = (np.arange(window * scale) + 0.5) / scale
    gap = large - (np.arange(window) + 0.5)[:, None]
    kernel = np.where(np.abs(gap) < LOBES, np.sinc(gap) * np.sinc(gap / LOBES), 0.0)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))
