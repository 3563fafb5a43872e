"""The coefficients against SciPy's, and against the conditions that make them what they are."""

from __future__ import annotations

import numpy as np
from scipy.integrate import RK45

from attnscope.engines.dormand_prince import DENSE, END, ERROR, STAGES


def test_the_coefficients_are_scipys() -> None:
    for row, stage in enumerate(STAGES):
        assert tuple(RK45.A[row, :row]) == stage
    assert tuple(RK45.B) == END
    assert tuple(RK45.E) == ERROR
    assert np.array_equal(RK45.P, DENSE)


def test_a_polynomial_of_degree_four_is_integrated_exactly() -> None:
    nodes = np.array([sum(row) for row in STAGES])
    for power in range(5):
        assert np.isclose(np.array(END) @ nodes**power, 1 / (power + 1), rtol=1e-14)
    # The end of the interpolant is the end of the step, and the error weighs a constant as nothing.
    assert np.allclose(DENSE.sum(axis=1), (*END, 0), atol=1e-14)
    assert abs(sum(ERROR)) < 1e-16
