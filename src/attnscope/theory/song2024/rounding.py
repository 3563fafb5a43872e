"""How far numbers computed in double precision may lie from the exact ones.

A certificate is a statement about exact numbers. Everything that it rests on is computed in double
precision, and what rounding may have done is taken off before anything is said. With u the unit of
rounding and γ_k = k u, a sum of k products computed in any order lies within γ_k Σ|a||b| of the
exact one (Higham 2002, section 3.1). So with q̄ = |X̃||W^Q| and k̄ = |X̃||W^K|, entry by entry, an
exponent q·k/√d of softmax lies within

    e = γ_{2D+d+8} q̄ k̄ᵀ/√d

of the exact one, a row of S within a relative distance of exp(2 max e) - 1 + γ_{n+8}, and a row of
B = S X within that, and γ_n more, of S|X|. Queries and keys that are large enough make e large:
then nothing is known of S, and nothing is certified.
"""

from __future__ import annotations

import math

import numpy as np

UNIT = float(np.finfo(np.float64).eps)
"""Unit of rounding; twice the true one, which leaves room for the terms of second order."""


def row_slack(kernel: str, x: np.ndarray, w_q: np.ndarray, w_k: np.ndarray) -> np.ndarray:
    """Bound the relative error of every row of S, shape ``(N, head, n)``.

    Args:
        kernel: name of the kernel.
        x: tokens, shape ``(N, n, D)``, with a column of ones if there are biases; 0 for padding.
        w_q: W^Q, shape ``(head, D, d)``, with the bias as a last row if there is one.
        w_k: W^K in the same way.
    """
    n, width, d = x.shape[1], x.shape[2], w_q.shape[2]
    sizes = np.abs(x)[:, None]
    q, k = sizes @ np.abs(w_q), sizes @ np.abs(w_k)
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel == "linear":
            # φ(x) = 1 + x or exp(x): its relative error is the absolute one of x, at most.
            one = (width + 4) * UNIT * (q.max(axis=3) + k.max(axis=(2, 3))[..., None])
            slack = np.expm1(2 * one) + 2 * (n + d + 8) * UNIT
        else:
            products = q @ k.swapaxes(2, 3)
            if "gaussian" in kernel:
                squares = (np.square(part).sum(axis=3) for part in (q, k))
                of_q, of_k = squares
                products = products + 0.5 * (of_q[..., None] + of_k[..., None, :])
            exponent = (2 * width + d + 8) * UNIT * products.max(axis=3) / math.sqrt(d)
            slack = np.expm1(2 * exponent) + (n + 8) * UNIT
    return np.nan_to_num(slack, nan=np.inf, posinf=np.inf)


def singular_value_error(matrix: np.ndarray) -> float:
    """Bound what LAPACK's singular values of a matrix may be off by."""
    return 4 * max(matrix.shape) * UNIT * float(np.linalg.norm(matrix))
