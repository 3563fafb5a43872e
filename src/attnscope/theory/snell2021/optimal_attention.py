"""The attention that minimises the loss of a word, given what positions say (A.1 of Snell 2021).

With logits γ_l of position l and γ_s of the decoder, p = softmax(Σ_l α_l γ_l + γ_s) (eq 27, 33),
and the loss of the right word y is log(1 + g(α)),

    g(α) = Σ_{o≠y} exp( Σ_l α_l (γ_lo - γ_ly) + γ_so - γ_sy )                         (eq 35, 36)

The paper uses that g is convex. So is log g, a log-sum-exp of linear functions, and it has the same
minimum; it does not flatten out where the word is nearly certain, so it is what is minimised here.

The Frank-Wolfe gap α·∇ - min_l ∇_l bounds how far log g is from its minimum over the simplex. The
gap of the loss itself is (1 - p) times that, so one certificate serves both. Steps are those of a
primal-dual interior-point method, for many words at a time: where the best attention lies on the
boundary, as it nearly always does, exponentiated gradient and Frank-Wolfe steps take thousands of
iterations for what these do in twenty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_softmax, logsumexp

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64

SLICE = 4_000_000
"""Numbers of γ that are worked on at a time."""
MAX_STEPS = 200
"""Interior-point steps before giving up; twenty are usual."""
NONE = 1e-6
"""Attention below this counts as none."""
EQUATION_30 = np.array([[0.0, 0, 0], [0, -10, 5], [0, 5, -10]])
"""The counterexample of eq 30: logits of three positions for three outputs, the first one right."""
_PROBLEMS = 0x0A1


@dataclass(frozen=True, eq=False)
class OptimalAttention:
    """Optimal attention of each word, with its certificate.

    The minimum is unique in p, not always in α: where several α are optimal (two positions with the
    same logits) this is the one in their middle.

    Args:
        alpha: α_opt, shape ``(..., position)``; 0 at masked positions.
        probability: p of the right word at α_opt, shape ``(...)``.
        beta: p of the right word if all attention is at one position, shape ``(..., position)``; 0
            at masked positions.
        gap: Frank-Wolfe gap: log g, and the loss, are not further than this above their minimum.
    """

    alpha: np.ndarray
    probability: np.ndarray
    beta: np.ndarray
    gap: np.ndarray

    @property
    def neglects(self) -> np.ndarray:
        """Whether the position with the largest β gets no attention, as in eq 30; shape ``(...)``.

        If several positions share the largest β, none of them gets any.
        """
        largest = self.beta >= self.beta.max(axis=-1, keepdims=True)
        return np.asarray(np.where(largest, self.alpha, 0.0).sum(axis=-1) < NONE)


def optimal_attention(
    logits: Numbers,
    target: Numbers,
    offset: Numbers | None = None,
    mask: Numbers | None = None,
    tolerance: float = 1e-8,
) -> OptimalAttention:
    """Minimise log(1 + g(α)) over the simplex.

    Leading axes broadcast: logits ``(sentence, 1, position, output)`` serve all words of a
    sentence, with targets ``(sentence, word)`` and offsets ``(sentence, word, output)``.

    Args:
        logits: γ_l, shape ``(..., position, output)``.
        target: number y of the right output, shape ``(...)``.
        offset: γ_s, shape ``(..., output)``; zero when left out.
        mask: true where there is a position, shape ``(..., position)``; everywhere when left out.
        tolerance: gap to reach.

    Raises:
        AttnscopeError: shapes do not fit, or the gap is not reached.

    >>> gamma = [[0, 0, 0], [0, -10, 5], [0, 5, -10]]
    >>> best = optimal_attention(gamma, 0)
    >>> best.alpha.round(6).tolist(), round(float(best.probability), 3)
    ([0.0, 0.5, 0.5], 0.859)
    """
    logits, right = float64(logits), float64(target).astype(np.int64)
    if logits.ndim < 2 or logits.shape[-1] < 2 or logits.shape[-2] < 1:
        raise AttnscopeError(
            f"logits of shape {logits.shape}: expected (..., position, output), with two outputs "
            "or more."
        )
    positions, outputs = logits.shape[-2:]
    if right.size and not (right.min() >= 0 and right.max() < outputs):
        raise AttnscopeError(
            f"target from {right.min()} to {right.max()}: expected 0 to {outputs - 1}."
        )
    shift = np.zeros(outputs) if offset is None else float64(offset)
    there = np.ones(positions, dtype=bool) if mask is None else float64(mask) > 0
    try:
        lead = np.broadcast_shapes(
            logits.shape[:-2], right.shape, shift.shape[:-1], there.shape[:-1]
        )
        # One more axis, so that a single word is a list of words too.
        gamma = np.broadcast_to(logits, (1, *lead, positions, outputs))
        shift = np.broadcast_to(shift, (1, *lead, outputs))
        there = np.broadcast_to(there, (1, *lead, positions))
    except ValueError as error:
        raise AttnscopeError(
            f"logits of shape {logits.shape}, target {right.shape}, offset {shift.shape}, mask "
            f"{there.shape}: expected (..., position, output), (...), (..., output) and "
            "(..., position) with the same leading axes."
        ) from error
    if not (np.isfinite(logits).all() and np.isfinite(shift).all()):
        raise AttnscopeError("logits or offset are not all finite: expected finite numbers.")
    if not there.any(axis=-1).all():
        raise AttnscopeError("mask leaves a word without any position: expected one or more.")
    right = np.broadcast_to(right, (1, *lead))
    count = math.prod(lead)
    found: list[tuple[np.ndarray, ...]] = []
    size = max(1, SLICE // (positions * outputs))
    for start in range(0, count, size):
        at = np.unravel_index(np.arange(start, min(count, start + size)), right.shape)
        found.append(_slice(gamma[at], shift[at], right[at], there[at], tolerance))
    if not found:
        empty = np.zeros((*lead, positions))
        return OptimalAttention(empty, np.zeros(lead), empty, np.zeros(lead))
    alpha, odds, beta, gap = (np.concatenate(part) for part in zip(*found, strict=True))
    return OptimalAttention(
        alpha.reshape(*lead, positions),
        expit(-odds).reshape(lead),
        beta.reshape(*lead, positions),
        gap.reshape(lead),
    )


def frank_wolfe_gap(
    logits: np.ndarray, target: np.ndarray, offset: np.ndarray, alpha: np.ndarray
) -> np.ndarray:
    """Return α·∇ - min ∇ of log g at any attention, position axis last in ``alpha``."""
    right = target[..., None]
    margins = logits - np.take_along_axis(
        np.broadcast_to(logits, (*target.shape, *logits.shape[-2:])), right[..., None], axis=-1
    )
    values = np.einsum("...l,...lo->...o", alpha, margins) + offset
    np.put_along_axis(values, right, -np.inf, axis=-1)
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    gradient = np.einsum("...lo,...o->...l", margins, weights)
    return np.asarray((alpha * gradient).sum(axis=-1) - gradient.min(axis=-1))


def random_optimum(
    count: int, positions: int, outputs: int, spread: float, seed: int
) -> OptimalAttention:
    """Solve problems whose logits are all drawn from N(0, spread²)."""
    rng = np.random.default_rng([seed, outputs, _PROBLEMS])
    logits = spread * rng.standard_normal((count, positions, outputs))
    offset = spread * rng.standard_normal((count, outputs))
    return optimal_attention(logits, np.zeros(count), offset)


def near_equation_30(count: int, noise: float, seed: int) -> OptimalAttention:
    """Solve problems like eq 30, with noise on every logit."""
    rng = np.random.default_rng([seed, _PROBLEMS])
    logits = EQUATION_30 + noise * rng.standard_normal((count, 3, 3))
    return optimal_attention(logits, np.zeros(count))


def _slice(
    gamma: np.ndarray, shift: np.ndarray, right: np.ndarray, mask: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rows = np.arange(len(right))
    beta = np.exp(log_softmax(gamma + shift[:, None], axis=-1)[rows, :, right])
    margins = gamma - gamma[rows, :, right][:, :, None]
    offsets = shift - shift[rows, right][:, None]
    # Without the right output itself, this is log g and not log(1 + g).
    offsets[rows, right] = -np.inf
    alpha, gap = _minimise(margins, offsets, mask, tolerance)
    if not (gap <= tolerance).all():
        raise AttnscopeError(
            f"the largest gap is {gap.max():.1e} for logits up to {np.abs(gamma).max():.3g}: "
            f"expected {tolerance:.1e}; logits beyond a few hundred make g a maximum with corners, "
            "which needs a larger tolerance or smaller logits."
        )
    odds, _, _ = _evaluate(margins, offsets, alpha)
    return alpha, odds, np.where(mask, beta, 0.0), gap


def _evaluate(
    margins: np.ndarray, offsets: np.ndarray, alpha: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log g, its gradient by α, and the softmax over wrong outputs."""
    values = np.einsum("nl,nlo->no", alpha, margins) + offsets
    level = logsumexp(values, axis=-1)
    weights = np.exp(values - level[:, None])
    return level, np.einsum("nlo,no->nl", margins, weights), weights


def _minimise(
    margins: np.ndarray, offsets: np.ndarray, mask: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Primal-dual interior point: ∇ + ν = z, α z = μ → 0, Σα = 1 (Boyd and Vandenberghe, 11.7)."""
    best = mask / mask.sum(axis=1, keepdims=True)
    gaps = np.full(len(mask), np.inf)
    state = _State(margins, offsets, mask, best.copy())
    rows = np.arange(len(mask))
    for _ in range(MAX_STEPS):
        gap = state.gap()
        better = gap < gaps[rows]
        gaps[rows[better]], best[rows[better]] = gap[better], state.alpha[better]
        going = gaps[rows] > tolerance
        if not going.any():
            break
        if not going.all():
            state, rows = state.keep(going), rows[going]
        try:
            state.advance()
        except np.linalg.LinAlgError:
            break
    return best, gaps


class _State:
    """A batch of problems between two steps; masked positions stay at zero."""

    def __init__(
        self,
        margins: np.ndarray,
        offsets: np.ndarray,
        mask: np.ndarray,
        alpha: np.ndarray,
        z: np.ndarray | None = None,
        nu: np.ndarray | None = None,
    ) -> None:
        self.margins, self.offsets, self.mask, self.alpha = margins, offsets, mask, alpha
        _, self.gradient, self.weights = _evaluate(margins, offsets, alpha)
        self.count = mask.sum(axis=1)
        if z is None or nu is None:
            least = np.where(mask, self.gradient, np.inf).min(axis=1)
            most = np.where(mask, self.gradient, -np.inf).max(axis=1)
            nu = np.maximum(most - least, 1e-3) - least
            z = np.where(mask, self.gradient + nu[:, None], 1.0)
        self.z, self.nu = z, nu

    def keep(self, rows: np.ndarray) -> _State:
        return _State(
            self.margins[rows],
            self.offsets[rows],
            self.mask[rows],
            self.alpha[rows],
            self.z[rows],
            self.nu[rows],
        )

    def gap(self) -> np.ndarray:
        least = np.where(self.mask, self.gradient, np.inf).min(axis=1)
        return np.asarray((self.alpha * (self.gradient - least[:, None])).sum(axis=1))

    def advance(self) -> None:
        """Take one damped Newton step towards the central path at a tenth of the present μ."""
        mask, ones = self.mask, self.mask.astype(float)
        alpha = np.where(mask, self.alpha, 1.0)
        mu = (0.1 * (ones * alpha * self.z).sum(axis=1) / self.count)[:, None]
        weighted = self.margins * self.weights[:, None, :]
        hessian = weighted @ self.margins.transpose(0, 2, 1)
        hessian -= self.gradient[:, :, None] * self.gradient[:, None, :]
        hessian *= ones[:, :, None] * ones[:, None, :]
        diagonal = np.arange(mask.shape[1])
        hessian[:, diagonal, diagonal] += self.z / alpha
        force = ones * (mu / alpha - self.gradient - self.nu[:, None])
        solved = np.linalg.solve(hessian, np.stack([force, ones], axis=2))
        # Shares drift by rounding; the step puts their sum back to 1.
        drift = 1 - self.alpha.sum(axis=1)
        d_nu = (solved[:, :, 0].sum(axis=1) - drift) / solved[:, :, 1].sum(axis=1)
        d_alpha = ones * (solved[:, :, 0] - d_nu[:, None] * solved[:, :, 1])
        d_z = ones * (mu / alpha - self.z - self.z / alpha * d_alpha)
        step = np.minimum(_room(alpha, d_alpha), _room(self.z, d_z))
        before = self._residual(self.gradient, self.alpha, self.z, self.nu, mu)
        for _ in range(40):
            s = step[:, None]
            new_alpha, new_z = self.alpha + s * d_alpha, self.z + s * d_z
            new_nu = self.nu + step * d_nu
            _, gradient, weights = _evaluate(self.margins, self.offsets, new_alpha)
            after = self._residual(gradient, new_alpha, new_z, new_nu, mu)
            # At the last digits the residual is rounding, and no step lowers it.
            worse = after > (1 - 0.01 * step) * before + 1e-14
            if not worse.any():
                break
            step = np.where(worse, step / 2, step)
        self.alpha, self.z, self.nu = new_alpha, new_z, new_nu
        self.gradient, self.weights = gradient, weights

    def _residual(
        self, gradient: np.ndarray, alpha: np.ndarray, z: np.ndarray, nu: np.ndarray, mu: np.ndarray
    ) -> np.ndarray:
        dual = np.where(self.mask, gradient + nu[:, None] - z, 0.0)
        centre = np.where(self.mask, alpha * z - mu, 0.0)
        return np.asarray(np.sqrt((dual**2).sum(axis=1) + (centre**2).sum(axis=1)))


def _room(values: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Return the longest step, at most 1, that leaves a hundredth of every value."""
    ratio = np.where(change < 0, -values / np.where(change < 0, change, -1.0), np.inf)
    return np.minimum(1.0, 0.99 * ratio.min(axis=1))
