from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from attnscope.theory.snell2021 import toy_solution


@pytest.mark.parametrize(
    "start", [(0.0, 0.0, 1.0), (0.2, 0.5, 0.0), (0.3, -0.4, 0.7), (1.0, 0.0, -0.2)]
)
def test_closed_form_is_the_solution(start: tuple[float, float, float]) -> None:
    times = np.linspace(0, 3, 13)

    def field(_: float, y: np.ndarray) -> list[float]:
        return [-y[2], y[2], y[1] - y[0]]

    solved = solve_ivp(field, (0, 3), start, "DOP853", t_eval=times, rtol=1e-12, atol=1e-13).y
    wrong, right, attention = start
    found = toy_solution(times, wrong, right, attention)
    assert np.abs(np.stack([found.wrong, found.right, found.attention]) - solved).max() < 1e-9


def test_what_never_changes() -> None:
    found = toy_solution(np.linspace(-1, 2, 7), 0.3, 0.45, 0.1)
    gap = found.right - found.wrong
    assert np.ptp(found.right + found.wrong) < 1e-12
    assert np.ptp(found.attention**2 - gap**2 / 2) < 1e-12


def test_nothing_moves_without_knowledge_and_attention() -> None:
    still = toy_solution([0.0, 5.0], 0.4, 0.4)
    assert still.attention.tolist() == [0.0, 0.0]
    assert still.right.tolist() == [0.4, 0.4]


def test_knowledge_starts_attention() -> None:
    found = toy_solution(1e-6, 0.1, 0.3)
    assert found.attention / 1e-6 == pytest.approx(0.2, rel=1e-6)
