r"""Attention and values trained together: two support vector machines, one inside the other.

With :math:`f_i = v \cdot \sum_t s_{it} x_{it}`, :math:`s_i = \mathrm{softmax}(X_i p)`, and both p
and v trained, v goes in the direction of the ordinary support vector machine of the chosen tokens,
:math:`y_i \, v \cdot x_{i \alpha_i} \ge 1`. Inputs on *its* margin decide the loss, and for them p
has to keep the chosen token apart with a margin of 1; for all others a margin of 0 will do
(2306.13596; the released code puts 0 there).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.tarzanagh2023.svm import ACTIVE, least_distance


@dataclass(frozen=True, eq=False)
class JointSvm:
    """Where p and v point to when both are trained.

    Args:
        values: v, of the support vector machine of the chosen tokens.
        support: which inputs are on its margin.
        selector: p, with a margin of 1 for those and of 0 for the others.
        strict: p with a margin of 1 for every input, as where v is fixed.
    """

    values: np.ndarray
    support: np.ndarray
    selector: np.ndarray
    strict: np.ndarray


def joint_svm(tokens: np.ndarray, labels: np.ndarray, chosen: np.ndarray) -> JointSvm:
    """Return both machines of a choice of tokens.

    Args:
        tokens: x, which are the keys as well, shape ``(input, token, d)``.
        labels: y, 1 or -1.
        chosen: α.

    Raises:
        AttnscopeError: no v separates the chosen tokens by their labels, or no p keeps them apart.

    Example:
        >>> tokens = np.array([[[1.0, 1], [0, 0]], [[1, -1], [0, 0]], [[0.5, 1.5], [0, 0]]])
        >>> found = joint_svm(tokens, np.array([1.0, -1, 1]), np.zeros(3, dtype=int))
        >>> print(found.support, f"{(found.selector**2).sum() / 2:.5f}")
        [ True  True False] 0.50000
    """
    inputs, count, _ = tokens.shape
    picked = tokens[np.arange(inputs), chosen]
    apart = (picked[:, None] - tokens)[np.arange(count) != np.asarray(chosen)[:, None]]
    values = least_distance(labels[:, None] * picked, np.ones(inputs))
    strict = least_distance(apart, np.ones(len(apart)))
    if values is None or strict is None:
        what = "their labels" if values is None else "the other tokens"
        raise AttnscopeError(
            f"chosen = {np.asarray(chosen).tolist()}: nothing keeps these tokens apart by {what}, "
            "so there is no margin to grow; expected tokens that can be."
        )
    support = labels * (picked @ values[0]) < 1 + ACTIVE
    selector = least_distance(apart, np.repeat(support, count - 1).astype(float))
    assert selector is not None  # Smaller margins are kept by whoever keeps larger ones.
    return JointSvm(values[0], support, selector[0], strict[0])


def joint_descent(
    tokens: np.ndarray, labels: np.ndarray, start: np.ndarray, steps: int, rate: float = 0.1
) -> np.ndarray:
    r"""Return p and v along normalised gradient descent, shape ``(step, 2, d)``.

    Each moves by ``rate`` in every step, in the direction of its own gradient of the logistic
    loss. The gradient of p is :math:`\frac12 \sum_{tu} s_t s_u (\gamma_t - \gamma_u)(x_t - x_u)`,
    in which attention of 1e-200 keeps all its digits, and the factor :math:`|\ell'|` is that of
    the worst input, which a direction does not feel.

    Raises:
        AttnscopeError: a gradient is zero: there is no direction.
    """
    path = np.empty((steps + 1, *start.shape))
    path[0] = start
    differences = tokens[:, :, None] - tokens[:, None]
    for step in range(steps):
        p, v = path[step]
        logits = tokens @ p
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        means = np.einsum("it,itd->id", weights, tokens)
        logs = -np.logaddexp(0, labels * (means @ v))
        push = labels * np.exp(logs - logs.max())
        scores = tokens @ v
        pairs = weights[:, :, None] * weights[:, None] * (scores[:, :, None] - scores[:, None])
        moved = np.stack([0.5 * np.einsum("i,itu,itud->d", push, pairs, differences), push @ means])
        sizes = np.linalg.norm(moved, axis=1, keepdims=True)
        if not (sizes > 0).all():
            raise AttnscopeError(
                f"step {step}: a gradient is zero, so that normalised descent has no direction; "
                "expected fewer steps, or another start."
            )
        path[step + 1] = path[step] + rate * moved / sizes
    return path
