"""Two machines of joint training, against the papers' notebooks and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.theory.tarzanagh2023 import joint_descent, joint_svm

LABELS = np.array([1.0, -1.0, 1.0])


def picture(third: tuple[float, float]) -> np.ndarray:
    """Return three inputs of a token and the origin."""
    tokens = np.zeros((3, 2, 2))
    tokens[:, 0] = [(1.0, 1.0), (1.0, -1.0), third]
    return tokens


@pytest.mark.parametrize(
    ("third", "half_square", "support"),
    [((0.5, 1.0), 0.944444, [True] * 3), ((0.5, 1.5), 0.5, [True, True, False])],
)
def test_the_values_of_the_notebooks(
    third: tuple[float, float], half_square: float, support: list[bool]
) -> None:
    found = joint_svm(picture(third), LABELS, np.zeros(3, dtype=int))
    assert (found.selector**2).sum() / 2 == pytest.approx(half_square, abs=1e-6)
    np.testing.assert_allclose(found.values, [0.0, 1.0], atol=1e-12)
    assert found.support.tolist() == support
    assert (found.strict**2).sum() >= (found.selector**2).sum() - 1e-12


def test_a_step_follows_the_gradient_of_the_logistic_loss() -> None:
    source = np.random.default_rng(0)
    tokens, start = source.normal(size=(4, 3, 2)), source.normal(size=(2, 2))
    labels = np.array([1.0, -1.0, 1.0, -1.0])

    def loss(parts: np.ndarray) -> float:
        logits = tokens @ parts[0]
        weights = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        output = np.einsum("it,itd,d->i", weights, tokens, parts[1])
        return float(np.logaddexp(0, -labels * output).mean())

    slope = np.zeros((2, 2))
    for at in np.ndindex(2, 2):
        nudge = np.zeros((2, 2))
        nudge[at] = 1e-6
        slope[at] = (loss(start + nudge) - loss(start - nudge)) / 2e-6
    moved = joint_descent(tokens, labels, start, 1, 0.1)[1] - start
    expected = -0.1 * slope / np.linalg.norm(slope, axis=1, keepdims=True)
    np.testing.assert_allclose(moved, expected, atol=1e-7)


def test_directions_are_right_where_plain_sums_have_lost_them() -> None:
    # By step 800 attention on the other token is e⁻⁷⁸: 1 - s is 0 in double precision.
    start = np.array([[0.0, -1.0], [-1.0, 0.0]])
    p = joint_descent(picture((0.5, 1.5)), LABELS, start, 800)[-1, 0]
    assert p[0] / np.linalg.norm(p) > 0.9999


def test_what_has_no_margin_is_said() -> None:
    with pytest.raises(AttnscopeError, match=r"chosen = \[1, 0, 0\].*by their labels"):
        joint_svm(picture((0.5, 1.0)), LABELS, np.array([1, 0, 0]))
    same = np.ones((2, 2, 2))
    with pytest.raises(AttnscopeError, match="by the other tokens"):
        joint_svm(same, np.ones(2), np.zeros(2, dtype=int))
    with pytest.raises(AttnscopeError, match="step 0: a gradient is zero"):
        joint_descent(same, np.ones(2), np.ones((2, 2)), 3)
