"""The matrix B of Theorem 1: what W^V multiplies.

With y_i in R^n the outputs of the layer are linear in W^V, MH = B w with w_h = W_h^V W_h^O and
block rows B_i = [S_i1 X_i, ..., S_iH X_i] in R^{n × HD}. B depends on W^Q, W^K and X alone.
Padding has no label and so no row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.song2024.rounding import UNIT


@dataclass(frozen=True, eq=False)
class LayerState:
    """What the theory reads off a layer of attention at one moment.

    Args:
        weights: S, shape ``(N, head, n, n)``.
        x: tokens, shape ``(N, n, D)``.
        w_o: W^O by heads, shape ``(head, d, outputs)``.
        kernel: name of the kernel, empty if it is not known.
        w_q: W^Q, shape ``(head, D, d)``, with the bias as a last row if there is one; or ``None``.
        w_k: W^K in the same way.
        outputs: MH(X), shape ``(N, n, outputs)``; ``None`` if W^V is not known.
        mask: true where there is a token, shape ``(N, n)``; ``None`` if there is no padding.
        trained: which of W_Q, W_K, W_V and W_O learn; ``None`` if it is not known, and then W_V is
            taken to learn.
        slack: bound of the relative error of every row of S, shape ``(N, head, n)``.
        output_error: bound of the error of every output, ``None`` with ``outputs``.
        output_size: |S||X||W^V||W^O|, what that error is relative to.
        precision: unit of rounding of the layer's own precision.
        dropout: share of weights that training leaves out, which the theory does not know.
    """

    weights: np.ndarray
    x: np.ndarray
    w_o: np.ndarray
    kernel: str = ""
    w_q: np.ndarray | None = None
    w_k: np.ndarray | None = None
    outputs: np.ndarray | None = None
    mask: np.ndarray | None = None
    trained: frozenset[str] | None = None
    slack: np.ndarray | None = None
    output_error: np.ndarray | None = None
    output_size: np.ndarray | None = None
    precision: float = UNIT
    dropout: float = 0.0

    @property
    def features(self) -> np.ndarray:
        """B, shape ``(tokens, head D)``: N n rows, or fewer with padding."""
        return self.of_tokens(features(self.weights, self.x))

    @property
    def feature_error(self) -> np.ndarray:
        """Bound of what rounding did to every entry of B, of its shape."""
        slack = np.float64(8 * UNIT) if self.slack is None else self.slack
        share = (slack + 2 * self.x.shape[1] * UNIT)[..., None]
        return self.of_tokens(features(share * np.abs(self.weights), np.abs(self.x)))

    def of_tokens(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows of real tokens, of an array whose first axes are ``N n`` in one."""
        return rows if self.mask is None else rows[self.mask.ravel()]

    @property
    def labels(self) -> int:
        """Tokens with a label, the rows of B: N n, or fewer with padding."""
        return self.x.shape[0] * self.x.shape[1] if self.mask is None else int(self.mask.sum())

    @property
    def columns(self) -> int:
        """H D, the columns of B."""
        return self.weights.shape[1] * self.x.shape[2]

    def learns(self, name: str) -> bool:
        """Whether W_Q, W_K, W_V or W_O learns, or may, as far as is known."""
        return self.trained is None or name in self.trained


def features(weights: Numbers, x: Numbers) -> np.ndarray:
    """Return B from weights of shape ``(N, head, n, n)`` and tokens of shape ``(N, n, D)``.

    >>> features([[[[0.5, 0.5], [0.0, 1.0]]]], [[[2.0], [4.0]]]).tolist()
    [[3.0], [4.0]]
    """
    weights, x = float64(weights), float64(x)
    if weights.ndim != 4 or x.ndim != 3 or weights.shape[::2] != x.shape[:2]:
        raise AttnscopeError(
            f"weights of shape {weights.shape} and x of shape {x.shape}: expected (N, heads, n, n) "
            "and (N, n, D)."
        )
    mixed = weights @ x[:, None]
    return np.ascontiguousarray(mixed.transpose(0, 2, 1, 3).reshape(x.shape[0] * x.shape[1], -1))


def state_from_arrays(weights: Numbers, x: Numbers, w_o: Numbers) -> LayerState:
    """Build the state from the weights S, the tokens and W^O.

    Numbers of single precision are taken to be known to eight units of their last digit.

    Args:
        weights: S, shape ``(N, head, n, n)``.
        x: tokens, shape ``(N, n, D)``.
        w_o: shape ``(head, d, outputs)``, or ``(head, d)`` for one output a token.
    """
    unit = max(_unit(part) for part in (weights, x))
    weights, x, w_o = float64(weights), float64(x), float64(w_o)
    w_o = w_o[..., None] if w_o.ndim == 2 else w_o
    features(weights, x)
    if w_o.ndim != 3 or w_o.shape[0] != weights.shape[1]:
        raise AttnscopeError(
            f"w_o of shape {w_o.shape} with {weights.shape[1]} heads: expected (heads, d, outputs) "
            "or (heads, d)."
        )
    for name, part in {"weights": weights, "x": x, "w_o": w_o}.items():
        finite(part, name)
    slack = np.full(weights.shape[:3], 8 * unit)
    return LayerState(weights, x, w_o, slack=slack, precision=unit)


def _unit(values: Numbers) -> float:
    kind = values.detach().cpu().numpy().dtype if isinstance(values, Tensor) else None
    kind = kind or getattr(values, "dtype", np.dtype(np.float64))
    return float(np.finfo(kind).eps) if np.issubdtype(kind, np.floating) else UNIT


def finite(values: np.ndarray, name: str) -> None:
    """Refuse NaN and infinity with a sentence that says where the first one is."""
    bad = ~np.isfinite(values)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise AttnscopeError(
            f"{name}: {values[first]} at {first}, {int(bad.sum())} of {values.size} numbers are "
            "not finite; expected finite ones."
        )


def feature_shift(state: LayerState, radius: float) -> float:
    """Bound ‖B - B_0‖_F while W^Q and W^K move by no more than ``radius`` together.

    Softmax: the Jacobian diag(s) - ssᵀ has norm ½ at most, so with κ the largest of all
    ‖W_h^Q‖₂ and ‖W_h^K‖₂

        ‖B - B_0‖_F <= (κ + ρ) ρ √(Σ_i ‖X̃_i‖₂⁴ ‖X_i‖₂²) / √(2d).

    Gaussian: u exp(-u²/(2√d)) is at most d^¼ e^-½, so without any κ

        ‖B - B_0‖_F <= ρ √(2n/e) d^-¼ √(Σ_i ‖X̃_i‖₂² ‖X_i‖₂²).

    X̃ is X with a column of ones if queries and keys have biases; padding has rows of 0. If neither
    learns, B stays. [Derived here.]
    """
    if not (state.learns("W_Q") or state.learns("W_K")):
        return 0.0
    if state.w_q is None or state.w_k is None or state.kernel not in ("softmax", "gaussian"):
        return math.inf
    d, n = state.w_q.shape[2], state.x.shape[1]
    longer = state.x
    if state.w_q.shape[1] > state.x.shape[2]:
        longer = np.concatenate([longer, np.ones_like(longer[..., :1])], axis=2)
    if state.mask is not None:
        longer = np.where(state.mask[..., None], longer, 0.0)
    sizes = np.linalg.norm(longer[..., : state.x.shape[2]], ord=2, axis=(1, 2))
    long_sizes = np.linalg.norm(longer, ord=2, axis=(1, 2))
    if state.kernel == "softmax":
        both = np.concatenate([state.w_q, state.w_k])
        kappa = float(np.linalg.norm(both, ord=2, axis=(1, 2)).max())
        data = math.sqrt(float(np.sum(long_sizes**4 * sizes**2)))
        return (kappa + radius) * radius * data / math.sqrt(2 * d)
    data = math.sqrt(float(np.sum(long_sizes**2 * sizes**2)))
    return radius * math.sqrt(2 * n / math.e) * d**-0.25 * data
