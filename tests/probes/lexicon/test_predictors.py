"""A linear fit against what it was made from."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.probes.lexicon.predictors import explained_share, fit


def test_an_exact_law_is_found() -> None:
    source = np.random.default_rng(0)
    a, b, c = source.normal(size=(3, 200)) * np.array([[1.0], [10.0], [3.0]]) + 5
    found = fit(2 * a - 0.4 * b, {"a": a, "b": b, "c": c})
    assert found.explained == pytest.approx(1.0)
    scale = (2 * a - 0.4 * b).std()
    np.testing.assert_allclose(
        found.coefficients, [2 * a.std() / scale, -0.4 * b.std() / scale, 0.0], atol=1e-9
    )
    assert found.adds[0] > 0.1
    assert found.adds[1] > 0.1
    assert found.adds[2] == pytest.approx(0.0, abs=1e-9)
    assert found.count == 200


def test_noise_explains_nothing_that_was_not_seen() -> None:
    source = np.random.default_rng(1)
    x, y = source.normal(size=(2, 500))
    assert fit(y, {"x": x}).explained < 0.01


def test_rows_with_a_hole_are_left_out() -> None:
    x = np.arange(40.0)
    y, z = 3 * x, np.ones(40)
    y[3], x[5] = np.nan, np.inf
    found = fit(y, {"x": x, "constant": z})
    assert found.count == 38
    assert found.coefficients[0] == pytest.approx(1.0)
    assert found.coefficients[1] == 0.0


def test_the_share_is_of_words_not_seen() -> None:
    """Against a plain loop that leaves one fold out at a time."""
    source = np.random.default_rng(2)
    x, folds = source.normal(size=(30, 2)), np.arange(30) % 5
    y = x @ [1.0, -2.0] + source.normal(size=30)
    error = spread = 0.0
    for fold in range(5):
        seen, held = folds != fold, folds == fold
        design = np.column_stack([np.ones(seen.sum()), x[seen]])
        weights = np.linalg.solve(design.T @ design, design.T @ y[seen])
        guess = np.column_stack([np.ones(held.sum()), x[held]]) @ weights
        error += ((y[held] - guess) ** 2).sum()
        spread += ((y[held] - y[seen].mean()) ** 2).sum()
    assert explained_share(y, x, folds) == pytest.approx(1 - error / spread)
