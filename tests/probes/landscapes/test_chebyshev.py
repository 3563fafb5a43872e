from __future__ import annotations

import numpy as np

from attnscope.probes.landscapes.chebyshev import points, reading


def test_points_run_over_the_interval_and_are_shared_between_degrees() -> None:
    coarse, fine = points(-1.0, 3.0, 8), points(-1.0, 3.0, 16)
    assert coarse[0] == -1.0
    assert coarse[-1] == 3.0
    assert (np.diff(fine) > 0).all()
    assert set(coarse) <= set(fine)
    assert len(set(points(-1.0, 3.0, 24)) & set(fine)) == 9


def test_polynomials_are_read_exactly() -> None:
    nodes, at = points(-1.0, 2.0, 6), np.array([-1.0, -0.3, 0.5, 1.9, 2.0])
    found = reading(nodes, at) @ (nodes**6 - 3 * nodes)
    np.testing.assert_allclose(found, at**6 - 3 * at, rtol=1e-12)


def test_the_error_falls_fast_for_what_is_smooth_and_slowly_at_a_kink() -> None:
    at = np.linspace(-1.0, 1.0, 101)

    def error(function: np.ufunc, degree: int) -> float:
        nodes = points(-1.0, 1.0, degree)
        return float(np.abs(reading(nodes, at) @ function(nodes - 0.1) - function(at - 0.1)).max())

    assert error(np.exp, 16) < 1e-13
    assert error(np.abs, 16) > 1e-3
