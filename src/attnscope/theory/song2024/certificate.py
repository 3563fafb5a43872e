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
  min_h σ_p(W_h^O) σ_min(B) >= 1/√2 of its start implies, f(t) <= f(0) exp(-βt).
- Gradient flow, for all time: under the same condition the path is no longer than ρ = 2√(f(0)/β).
  Within that distance B moves by no more than a bound (:func:`feature_shift`; 0 if W^Q and W^K
  are frozen) and each W_h^O by no more than ρ (0 if it is frozen). By Weyl σ_min(B) and σ_p(W_h^O)
  lose no more than that. If the product keeps 1/√2 of its start, the condition never breaks, and
  the loss goes to 0 (:attr:`Certificate.for_all_time`).
- Gradient descent with steps η <= 1/L, L the smoothness along the step: f_{k+1} <= (1 - ημ_k) f_k.

All of it needs W^V to learn: frozen, it gives nothing. Padding has no label, so no row in B and no
part in f. Everything is computed in double precision, whatever the layer's own, and what rounding
may have done is taken off σ_min(B), σ_p(W_h^O) and μ and put on top of f
(:mod:`attnscope.theory.song2024.rounding`): a rank that is within rounding of less is not
certified. The statement is about exact gradient flow from these weights. A run in single precision
follows it down to :attr:`Certificate.floor`, where rounding is all that is left of the loss.

Descent has no factor 2: as f is ½ a sum of squares here, the poster's (1 - ηβ)^t comes out as
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
from attnscope.theory.song2024.features import LayerState, feature_shift, finite
from attnscope.theory.song2024.layer import layer_state
from attnscope.theory.song2024.rounding import UNIT, singular_value_error

LARGEST = 4096
"""Most labels N n p for which the best PL constant is computed, by an eigenvalue problem."""


def smallest_singular_value(features: Numbers) -> float:
    """Return σ_Nn(B), the last of as many singular values as B has rows; 0 if it has fewer columns.

    >>> round(smallest_singular_value([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), 6)
    2.0
    """
    features = float64(features)
    if features.shape[1] < features.shape[0] or not len(features):
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

    With one output it is σ_min² of the blocks ‖W_h^O‖ B_h side by side. What rounding may have done
    is taken off; 0 is left where nothing else is sure, and where W^V does not learn.
    """
    heads, _, outputs = state.w_o.shape
    if not state.learns("W_V") or not state.labels:
        return 0.0
    if outputs > 1 and state.labels * outputs > LARGEST:
        raise AttnscopeError(
            f"{state.labels} tokens with {outputs} outputs each: expected {LARGEST} labels or "
            "fewer for a PL constant; give fewer sequences."
        )

    def by_head(rows: np.ndarray) -> np.ndarray:
        return rows.reshape(state.labels, heads, -1).transpose(1, 0, 2)

    blocks, errors = by_head(state.features), by_head(state.feature_error)
    sizes = np.linalg.norm(state.w_o, axis=(1, 2))
    # μ is σ_min² of the blocks B_h ⊗ (W_h^O)ᵀ side by side, which moves by no more than they do.
    error = float(np.linalg.norm(sizes[:, None, None] * errors))
    if outputs == 1:
        scaled = (sizes[:, None, None] * blocks).transpose(1, 0, 2).reshape(state.labels, -1)
        smallest = smallest_singular_value(scaled)
        error += singular_value_error(scaled)
    else:
        total = np.asarray(
            sum(
                np.kron(block @ block.T, w.T @ w)
                for block, w in zip(blocks, state.w_o, strict=True)
            )
        )
        noise = 4 * (len(total) + state.columns) * UNIT * float(np.trace(total))
        smallest = math.sqrt(max(float(np.linalg.eigvalsh(total)[0]) - noise, 0.0))
    return max(smallest - error, 0.0) ** 2


@dataclass(frozen=True)
class Certificate:
    """What Theorem 1 says from one state on.

    Args:
        labels: N n, or the number of real tokens if there is padding.
        columns: H D.
        outputs: p.
        sigma_min: σ_Nn(B_0), less what rounding may have done.
        strength: min_h σ_p(W_h^O), in the same way.
        beta: the constant of Theorem 1, (strength × sigma_min)²; 0 if W^V does not learn.
        pl: μ, the best constant that W^V gives; 0 if W^V does not learn.
        loss: f at the state, and what rounding may have taken from it; NaN if no labels were given.
        reach: 2√(f/β), the longest path that gradient flow can take while the rate holds.
        shift: bound of ‖B - B_0‖_F within that reach; infinite where none is known.
        output_shift: how far W^O may move within that reach; 0 if it is frozen.
        margin: what rounding may have done to σ_Nn(B_0), and was taken off.
        floor: the loss that rounding leaves in the layer's own precision, about.
        trained: which of W_Q, W_K, W_V and W_O learn; ``None`` if it is not known.
        dropout: share of weights that training leaves out; the certificate is of the layer without.
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
    output_shift: float = 0.0
    margin: float = 0.0
    floor: float = math.nan
    trained: frozenset[str] | None = None
    dropout: float = 0.0

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
    def used(self) -> float:
        """How far B might move over how far it may; infinite where it may not move at all."""
        return self.shift / self.room if self.room > 0 else math.inf

    @property
    def fixed(self) -> bool:
        """Whether neither B nor W^O moves, so that the loss is quadratic and μ stays."""
        return self.trained is not None and not self.trained & {"W_Q", "W_K", "W_O"}

    @property
    def for_all_time(self) -> bool:
        """Whether gradient flow of what learns is certain to reach loss 0."""
        if self.fixed:
            return self.rate > 0
        if not self.applies or math.isnan(self.loss):
            return False
        features = 1 - self.shift / self.sigma_min
        outputs = 1 - self.output_shift / self.strength
        return features > 0 and outputs > 0 and features * outputs >= math.sqrt(0.5) * (1 + 1e-9)

    def bound(self, times: Numbers) -> np.ndarray:
        """Return f(0) exp(-rate t), for gradient flow."""
        return np.asarray(self.loss * np.exp(-self.rate * float64(times)))

    def descent_bound(self, steps: Numbers, lr: float) -> np.ndarray:
        """Return f(0) (1 - η rate)^k, the bound as printed, for gradient descent."""
        return np.asarray(self.loss * (1 - lr * self.rate) ** float64(steps))

    @property
    def verdict(self) -> str:
        """The certificate as a sentence."""
        left_out = (
            f" Dropout of {self.dropout:g} is left out: this is said of the layer without it."
            if self.dropout and self.rate > 0
            else ""
        )
        return self._sentence() + left_out

    def _sentence(self) -> str:
        size = f"HD = {self.columns}, Nn = {self.labels}"
        if not self.labels:
            return "Theorem 1 does not apply: there is no token but padding."
        if self.trained is not None and "W_V" not in self.trained:
            return "Theorem 1 does not apply: W^V does not learn. Nothing is certified."
        if not self.wide_enough:
            return (
                f"Theorem 1 does not apply: {size}, and it asks for HD >= Nn. Training may still "
                "reach the optimum; nothing is certified."
            )
        if not self.applies:
            why = (
                f"W^O of a head has fewer rows than the {self.outputs} outputs, or lacks rank"
                if self.strength == 0
                else f"the rows of B are linearly dependent, or within rounding ({self.margin:.1g})"
            )
            head = f"Theorem 1 does not apply as printed: {size}, but beta = 0, since {why}."
            if self.pl == 0:
                return f"{head} Nothing is certified."
            until = "for all time" if self.fixed else "for as long as the constant stays above half"
            return (
                f"{head} All heads together give the PL constant {self.pl:.3g}: the loss of a "
                f"gradient flow falls at that rate {until}."
            )
        rate = f"{size}, sigma_min(B_0) = {self.sigma_min:.3g}, beta = {self.beta:.3g}"
        if self.fixed:
            return (
                f"Global convergence is certified for all time: {rate}. W^Q, W^K and W^O are "
                "frozen, so that B does not move."
            )
        if math.isnan(self.loss):
            return f"Theorem 1 applies: {rate}. Give y to learn how far the weights may go."
        outputs = f", W^O by {self.output_shift:.3g}" if self.output_shift else ""
        if self.for_all_time:
            return (
                f"Global convergence is certified for all time: {rate}. Weights move by no more "
                f"than {self.reach:.3g}, B by no more than {self.shift:.3g} of {self.room:.3g}"
                f"{outputs}."
            )
        return (
            f"Theorem 1 applies at the start: {rate}. That B stays near B_0 is not certain "
            f"beforehand (it may move by {self.shift:.3g}{outputs}, allowed are {self.room:.3g}): "
            "look along the run."
        )


def certify(
    layer: KernelAttention | nn.MultiheadAttention | LayerState,
    x: Tensor | None = None,
    y: Numbers | None = None,
    mask: Tensor | None = None,
) -> Certificate:
    """Compute the certificate of a layer at its present weights, for what learns in it.

        print(certify(nn.MultiheadAttention(64, 4), x).verdict)

    Args:
        layer: :class:`KernelAttention`, ``nn.MultiheadAttention``, or the state that
            :func:`state_from_arrays` returns, of which W^V is taken to learn.
        x: tokens, shape ``(N, n, D)``; not needed with a state.
        y: labels, shape ``(N, n)`` or ``(N, n, outputs)``; those of padding do not count.
        mask: true where there is a token, shape ``(N, n)``.
    """
    if isinstance(layer, LayerState):
        state = layer
    elif x is None:
        raise AttnscopeError("certify without x: expected the tokens, shape (N, n, D).")
    else:
        state = layer_state(layer, x, mask)
    b, outputs = state.features, state.w_o.shape[2]
    margin = float(np.linalg.norm(state.feature_error)) + singular_value_error(b)
    sigma = max(smallest_singular_value(b) - margin, 0.0)
    w_o_margin = 4 * max(state.w_o.shape) * UNIT * float(np.linalg.norm(state.w_o))
    strength = max(output_strength(state.w_o) - w_o_margin, 0.0)
    beta = (strength * sigma) ** 2 if state.learns("W_V") else 0.0
    loss = reach = shift = floor = math.nan
    output_shift = 0.0
    if y is not None:
        loss, floor = _loss(state, y)
        reach = 2 * math.sqrt(loss / beta) if beta > 0 else math.inf
        shift = feature_shift(state, reach) if reach < math.inf else math.inf
        output_shift = reach if state.learns("W_O") else 0.0
    small = outputs == 1 or state.labels * outputs <= LARGEST
    pl = pl_constant(state) if small else 0.0
    if not math.isfinite(beta + pl):
        raise AttnscopeError(
            f"beta = {beta:g}: beyond the largest number; expected smaller tokens or weights."
        )
    return Certificate(
        state.labels,
        state.columns,
        outputs,
        sigma,
        strength,
        beta,
        pl,
        loss,
        reach,
        shift,
        output_shift,
        margin,
        floor,
        state.trained,
        state.dropout,
    )


def _loss(state: LayerState, y: Numbers) -> tuple[float, float]:
    """Return f with what rounding may have taken from it, and what rounding leaves of it."""
    if state.outputs is None or state.output_error is None or state.output_size is None:
        raise AttnscopeError(
            "y with a state from arrays: expected a layer, whose outputs are known; or leave y out."
        )
    labels = float64(y)
    if labels.size != state.outputs.size:
        raise AttnscopeError(
            f"y of shape {labels.shape}: expected as many labels as outputs, {state.outputs.shape}."
        )
    outputs, error, size, labels = (
        state.of_tokens(part.reshape(-1, state.w_o.shape[2]))
        for part in (state.outputs, state.output_error, state.output_size, labels)
    )
    finite(labels, "y")
    residual = np.abs(outputs - labels) + error + UNIT * (np.abs(outputs) + np.abs(labels))
    with np.errstate(over="ignore"):
        f = 0.5 * float(np.sum(residual**2))
    if not math.isfinite(f):
        raise AttnscopeError(
            f"y of size {np.abs(labels).max():.3g}: the loss is beyond the largest number; "
            "expected smaller labels or outputs."
        )
    width = state.x.shape[1] + state.columns
    floor = 0.5 * float(np.sum((width * state.precision * (size + np.abs(labels))) ** 2))
    return f, floor
