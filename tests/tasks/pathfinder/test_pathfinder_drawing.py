"""Strokes and discs as pixels."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.tasks.pathfinder.drawing import draw, lanczos

NOWHERE = np.full((1, 1, 2), -50.0)
SETTING = {"window": 12, "thickness": 0.5, "radius": 1.5, "scale": 2, "contrast": 1.5}


def test_reduction_keeps_what_is_even() -> None:
    matrix = lanczos(8, 2)
    assert matrix.shape == (8, 16)
    np.testing.assert_allclose(matrix @ np.ones(16), 1)
    # Its largest weights lie on the two large pixels of a small one.
    np.testing.assert_array_equal(np.sort(np.argsort(matrix[4])[-2:]), [8, 9])


def test_a_stroke_is_bright_where_it_is() -> None:
    stroke = np.array([[[[3.0, 6.25], [7.0, 6.25]]]])
    (image,) = draw(stroke, NOWHERE, **SETTING)  # type: ignore[arg-type]
    assert (image[6, 3:7] > 120).all()
    assert image[[2, 10]].max() == 0
    assert image[:, 10:].max() < 20
    # A stroke that points the other way is the same stroke; one that points down is transposed.
    np.testing.assert_array_equal(draw(stroke[:, :, ::-1], NOWHERE, **SETTING)[0], image)  # type: ignore[arg-type]
    np.testing.assert_array_equal(draw(stroke[..., ::-1], NOWHERE, **SETTING)[0], image.T)  # type: ignore[arg-type]


def test_strokes_combine_by_their_maximum() -> None:
    stroke = np.array([[[3.0, 6.0], [7.0, 6.0]]])
    once = draw(stroke[:, None], NOWHERE, **SETTING)  # type: ignore[arg-type]
    missing = np.full_like(stroke, np.nan)
    twice = draw(np.stack([stroke, missing, stroke], axis=1), NOWHERE, **SETTING)  # type: ignore[arg-type]
    np.testing.assert_array_equal(once, twice)


def test_a_disc_has_its_area() -> None:
    nothing = np.full((1, 1, 2, 2), np.nan)
    (image,) = draw(nothing, np.array([[[6.2, 5.7]]]), **SETTING)  # type: ignore[arg-type]
    assert image.sum() / 255 == pytest.approx(np.pi * 1.5**2, rel=0.06)
    assert image[5, 6] == 255
    centre = (image[..., None] * np.indices((12, 12)).transpose(1, 2, 0)).sum((0, 1)) / image.sum()
    np.testing.assert_allclose(centre + 0.5, [5.7, 6.2], atol=0.06)
