"""Theorem 1 of Song 2024 as a certificate: from one state of a layer to a rate of convergence.

Let f = ½ Σ_i ‖MH(X_i) - y_i‖² = ½‖R‖², R in R^{Nn × p}. With B_h the columns of B of head h,

    ∂f/∂W_h^V = B_hᵀ R (W_h^O)ᵀ,
    ‖∇f‖² >= Σ_h ‖∂f/∂W_h^V‖² >= min_h σ_p²(W_h^O) σ_Nn²(B) ‖R‖² = 2 β f,

    β = min_h σ_p²(W_h^O) σ_Nn²(B),

with σ_p the p-th singular value: min_h ‖W_h^O‖² if p = 1. This is the inequality of Polyak and
Łojasiewicz (PL) with constant β; what else is trained only adds to ‖∇f‖². B has Nn rows and HD
columns, so HD >= Nn is what lets σ_Nn(B) be positive. The best constant that W^V gives is

    μ = λ_min(Σ_h B_h B_hᵀ ⊗ (W_h^O)ᵀ W_h^O) >= β.

What is rigorous, with μ(t) along the run:

- Gradient flow, whatever happens: df/dt = -‖∇f‖² <= -2μ(t) f, so f(t) <= f(0) exp(-2∫μ).
- Gradient flow, with the constant of the start: as long as μ(s) >= β/2, which
  σ_min(B(s)) >= σ_min(B_0)/√2 implies, f(t) <= f(0) exp(-βt). By Weyl that is so while
  ‖B(s) - B_0‖₂ <= (1 - 1/√2) σ_min(B_0).
- Gradient flow, for all time: under the same condition the path is no longer than 2√(f(0)/β). If
  B cannot move by (1 - 1/√2) σ_min(B_0) within that distance, the condition never breaks, and the
  loss goes to 0 (:attr:`Certificate.for_all_time`).
- Gradient descent with steps η <= 1/L, L the smoothness along the step: f_{k+1} <= (1 - ημ_k) f_k.

The last has no factor 2: as f is ½ a sum of squares here, the poster's (1 - ηβ)^t comes out as
printed. The poster writes σ_min²(W^O) for what is min_h σ_p²(W_h^O) here: for p = 1 and W^O as one
column, σ_min(W^O) = ‖W^O‖ would be too large, and the bound false for some layers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.song2024.features import LayerState, feature_shift, layer_state

LARGEST = 4096
"""Most labels N n p for which the best PL constant is computed, by an eigenvalue problem."""


def smallest_singular_value(features: Numbers) -> float:
    """Return σ_Nn(B), the last of as many singular values as B has rows; 0 if it has fewer columns.

    >>> round(smallest_singular_value([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), 6)
    2.0
    """
    features = float64(features)
    if features.shape[1] < features.shape[0]:
        return 0.0
    return float(np.linalg.svd(features, compute_uv=False)[-1])


def output_strength(w_o: Numbers) -> float:
    """Return min_h σ_p(W_h^O) for W^O of shape ``(head, d, p)``; 0 if p is larger than d."""
    w_o = float64(w_o)
    if w_o.shape[2] > w_o.shape[1]:
        return 0.0
    return float(np.linalg.svd(w_o, compute_uv=False)[:, -1].min())


def pl_constant(state: LayerState) -> float:
    """Return μ = λ_min(Σ_h B_h B_hᵀ ⊗ (W_h^O)ᵀ W_h^O), the best constant that W^V gives.

    With one output it is σ_min² of the blocks ‖W_h^O‖ B_h side by side.
    """
    heads, _, outputs = state.w_o.shape
    blocks = state.features.reshape(state.labels, heads, -1).transpose(1, 0, 2)
    if outputs == 1:
        sizes = np.linalg.norm(state.w_o, axis=(1, 2))
        scaled = (sizes[:, None, None] * blocks).transpose(1, 0, 2).reshape(state.labels, -1)
        return smallest_singular_value(scaled) ** 2
    if state.labels * outputs > LARGEST:
        raise AttnscopeError(
            f"{state.labels} tokens with {outputs} outputs each: expected {LARGEST} labels or "
            "fewer for a PL constant; give fewer sequences."
        )
    total = sum(
        np.kron(block @ block.T, w.T @ w) for block, w in zip(blocks, state.w_o, strict=True)
    )
    eigenvalues = np.linalg.eigvalsh(np.asarray(total))
    noise = len(eigenvalues) * np.finfo(float).eps * eigenvalues[-1]
    return float(eigenvalues[0]) if eigenvalues[0] > noise else 0.0


@dataclass(frozen=True)
class Certificate:
    """What Theorem 1 says from one state on.

    Args:
        labels: N n.
        columns: H D.
        outputs: p.
        sigma_min: σ_Nn(B_0).
        strength: min_h σ_p(W_h^O).
        beta: the constant of Theorem 1, (strength × sigma_min)².
        pl: μ, the best constant that W^V gives.
        loss: f at the state, NaN if no labels were given.
        reach: 2√(f/β), the longest path that gradient flow can take while the rate holds.
        shift: bound of ‖B - B_0‖_F within that reach; infinite where none is known.
    """

    labels: int
    columns: int
    outputs: int
    sigma_min: float
    strength: float
    beta: float
    pl: float
    loss: float
    reach: float
    shift: float

    @property
    def wide_enough(self) -> bool:
        """Whether H D >= N n."""
        return self.columns >= self.labels

    @property
    def applies(self) -> bool:
        """Whether β is positive, beyond rounding."""
        return self.beta > 0

    @property
    def rate(self) -> float:
        """β, or μ where β is 0: f(t) <= f(0) exp(-rate t) along a flow while μ(t) >= rate/2."""
        return self.beta if self.applies else self.pl

    @property
    def room(self) -> float:
        """How far B may move before the rate is in doubt, (1 - 1/√2) σ_min(B_0)."""
        return (1 - math.sqrt(0.5)) * self.sigma_min

    @property
    def for_all_time(self) -> bool:
        """Whether gradient flow of W^Q, W^K and W^V is certain to reach loss 0."""
        return self.applies and self.shift <= self.room

    def bound(self, times: Numbers) -> np.ndarray:
        """Return f(0) exp(-rate t), for gradient flow."""
        return np.asarray(self.loss * np.exp(-self.rate * float64(times)))

    def descent_bound(self, steps: Numbers, lr: float) -> np.ndarray:
        """Return f(0) (1 - η rate)^k, the bound as printed, for gradient descent."""
        return np.asarray(self.loss * (1 - lr * self.rate) ** float64(steps))

    @property
    def verdict(self) -> str:
        """The certificate as a sentence."""
        size = f"HD = {self.columns}, Nn = {self.labels}"
        if not self.wide_enough:
            return (
                f"Theorem 1 does not apply: {size}, and it asks for HD >= Nn. Training may still "
                "reach the optimum; nothing is certified."
            )
        if not self.applies:
            why = (
                f"W^O of a head has fewer rows than the {self.outputs} outputs, or lacks rank"
                if self.strength == 0
                else "the rows of B are linearly dependent"
            )
            head = f"Theorem 1 does not apply as printed: {size}, but beta = 0, since {why}."
            if self.pl == 0:
                return f"{head} Nothing is certified."
            return (
                f"{head} All heads together give the PL constant {self.pl:.3g}: the loss of a "
                f"gradient flow falls at that rate for as long as the constant stays above half."
            )
        rate = f"{size}, sigma_min(B_0) = {self.sigma_min:.3g}, beta = {self.beta:.3g}"
        if math.isnan(self.loss):
            return f"Theorem 1 applies: {rate}. Give y to learn how far the weights may go."
        if self.for_all_time:
            return (
                f"Global convergence is certified for all time: {rate}. Weights move by no more "
                f"than {self.reach:.3g}, B by no more than {self.shift:.3g} of {self.room:.3g}."
            )
        return (
            f"Theorem 1 applies at the start: {rate}. That B stays near B_0 is not certain "
            f"beforehand (it may move by {self.shift:.3g}, allowed are {self.room:.3g}): look "
            "along the run."
        )


def certify(
    layer: KernelAttention | nn.MultiheadAttention | LayerState,
    x: Tensor | None = None,
    y: Numbers | None = None,
    mask: Tensor | None = None,
) -> Certificate:
    """Compute the certificate of a layer at its present weights, with W^O held fixed.

        print(certify(nn.MultiheadAttention(64, 4), x).verdict)

    Args:
        layer: :class:`KernelAttention`, ``nn.MultiheadAttention``, or the state that
            :func:`state_from_arrays` returns.
        x: tokens, shape ``(N, n, D)``; not needed with a state.
        y: labels, shape ``(N, n)`` or ``(N, n, outputs)``.
        mask: true where there is a token, shape ``(N, n)``.
    """
    if isinstance(layer, LayerState):
        state = layer
    elif x is None:
        raise AttnscopeError("certify without x: expected the tokens, shape (N, n, D).")
    else:
        state = layer_state(layer, x, mask)
    b = state.features
    sigma, strength = smallest_singular_value(b), output_strength(state.w_o)
    if sigma <= max(b.shape) * np.finfo(float).eps * float(np.linalg.norm(b, 2)):
        sigma = 0.0
    beta, outputs = (strength * sigma) ** 2, state.w_o.shape[2]
    loss = reach = shift = math.nan
    if y is not None:
        loss = _loss(state, y)
        reach = 2 * math.sqrt(loss / beta) if beta > 0 else math.inf
        shift = feature_shift(state, reach) if reach < math.inf else math.inf
    small = outputs == 1 or state.labels * outputs <= LARGEST
    pl = pl_constant(state) if small and sigma + (outputs > 1) > 0 else 0.0
    return Certificate(
        state.labels, state.columns, outputs, sigma, strength, beta, pl, loss, reach, shift
    )


def _loss(state: LayerState, y: Numbers) -> float:
    if state.outputs is None:
        raise AttnscopeError(
            "y with a state from arrays: expected a layer, whose outputs are known; or leave y out."
        )
    labels = float64(y)
    if labels.size != state.outputs.size:
        raise AttnscopeError(
            f"y of shape {labels.shape}: expected as many labels as outputs, {state.outputs.shape}."
        )
    return 0.5 * float(np.sum((state.outputs - labels.reshape(state.outputs.shape)) ** 2))
