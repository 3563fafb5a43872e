"""The stable rank against singular values."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.probes.matrix_shape import stable_rank


@pytest.mark.parametrize("size", [(7, 7), (9, 4), (3, 8), (1, 5)])
def test_against_singular_values(size: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).normal(size=size)
    values = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(stable_rank(matrix), (values**2).sum() / values[0] ** 2, rtol=1e-12)


def test_no_rank_without_numbers() -> None:
    assert np.isnan(stable_rank(np.zeros((3, 3))))
    assert np.isnan(stable_rank(np.full((3, 3), np.nan)))
