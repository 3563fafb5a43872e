"""The law of updates over batch size, against itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnscope.errors import AttnscopeError
from attnscope.theory.aoyama2025 import CriticalBatch, critical_batch

SIZES = np.array([8.0, 32.0, 128.0, 512.0])


@given(st.floats(1.0, 1e4), st.floats(0.0, 1e3))
def test_a_known_law_is_found(updates: float, size: float) -> None:
    found = critical_batch(SIZES, CriticalBatch(updates, size).at(SIZES))
    assert found.updates == pytest.approx(updates, rel=1e-8)
    assert found.size == pytest.approx(size, rel=1e-7, abs=1e-8)


def test_the_exponent_is_the_slope_of_tokens() -> None:
    law, step = CriticalBatch(150.0, 64.0), 1e-6
    low, high = (np.log(SIZES * f * law.at(SIZES * f)) for f in (1 - step, 1 + step))
    np.testing.assert_allclose((high - low) / (2 * step), law.exponent(SIZES), atol=1e-8)
    assert law.exponent(64.0) == 0.5


def test_updates_that_do_not_fall_have_no_noise() -> None:
    assert critical_batch(SIZES, np.full(4, 100.0)).size == pytest.approx(0.0, abs=1e-9)
    assert critical_batch(SIZES, SIZES).size == 0.0


@pytest.mark.parametrize(
    ("batches", "updates", "words"),
    [
        ([32.0], [100.0], "expected two batch sizes or more"),
        ([32.0, 32.0], [100.0, 90.0], "expected two batch sizes or more"),
        ([32.0, 64.0], [100.0], "expected two batch sizes or more"),
        ([32.0, 64.0], [100.0, np.nan], "expected numbers above 0"),
        ([0.0, 64.0], [100.0, 90.0], "expected numbers above 0"),
        ([32.0, 64.0], [100.0, 40.0], "fall as fast as 1/batch"),
    ],
)
def test_what_cannot_be_fitted_is_said(
    batches: list[float], updates: list[float], words: str
) -> None:
    with pytest.raises(AttnscopeError, match=words):
        critical_batch(batches, updates)
