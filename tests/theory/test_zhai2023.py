"""The floor of entropy: attained by one row, never passed by any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import entr, softmax

from attnscope.errors import AttnscopeError
from attnscope.theory.zhai2023 import (
    entropy_floor,
    largest_scale,
    row_scale,
    spectral_scale,
    tight_row,
)

LOGITS = st.integers(2, 40).flatmap(
    lambda n: arrays(np.float64, n, elements=st.floats(-30, 30, allow_nan=False))
)


@given(LOGITS)
def test_no_row_has_less_entropy_than_its_scale_allows(logits: np.ndarray) -> None:
    scale = float(np.linalg.norm(logits - logits.mean()))
    assert entr(softmax(logits)).sum() >= entropy_floor(scale, len(logits)) - 1e-9


@pytest.mark.parametrize("keys", [2, 8, 64, 512])
@pytest.mark.parametrize("scale", [0.5, 5.0, 20.0])
def test_one_row_attains_it_and_half_the_scale_would_be_wrong(keys: int, scale: float) -> None:
    row = tight_row(scale, keys)
    assert np.linalg.norm(row - row.mean()) == pytest.approx(scale, rel=1e-12)
    found = entr(softmax(row)).sum()
    assert found == pytest.approx(float(entropy_floor(scale, keys)), rel=1e-9, abs=1e-13)
    assert found < entropy_floor(scale / 2, keys)


def test_numbers() -> None:
    assert entropy_floor(5.0, 64) == pytest.approx(1.802615624, abs=1e-9)
    assert entropy_floor(10.0, 512) == pytest.approx(0.2475097833, abs=1e-10)
    assert entropy_floor(0.0, 64) == pytest.approx(np.log(64), rel=1e-15)
    assert entropy_floor(3.0, 1) == 0


@given(st.floats(0.01, 30), st.integers(2, 200))
def test_the_largest_scale_is_where_the_floor_is_met(scale: float, keys: int) -> None:
    entropy = float(entropy_floor(scale, keys))
    if entropy > 1e-12:
        met = entropy_floor(largest_scale(entropy, keys), keys)
        assert met == pytest.approx(entropy, rel=1e-9, abs=1e-12)


def test_scales_of_rows_and_of_matrices() -> None:
    logits = np.array([[1.0, 3.0, -np.inf], [2.0, -np.inf, -np.inf]])
    np.testing.assert_allclose(row_scale(logits), [np.sqrt(2), 0.0])
    chance = np.random.default_rng(0)
    keys, queries, tokens = (chance.normal(size=s) for s in ((4, 3), (4, 3), (6, 4)))
    whole = spectral_scale(keys, queries, tokens)
    rows = row_scale(tokens @ keys @ queries.T @ tokens.T)
    assert (rows <= whole).all()


def test_a_row_of_one_key_has_no_tight_row() -> None:
    with pytest.raises(AttnscopeError, match="keys = 1: expected 2 or more"):
        tight_row(1.0, 1)
    with pytest.raises(AttnscopeError, match="scale = -1"):
        tight_row(-1.0, 4)
