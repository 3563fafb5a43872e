"""The training of a bag of words with attention, reduced to two numbers a word. Beyond Lu 2021.

With a fixed classifier of two orthonormal columns U and embeddings that start near zero, gradients
only ever move a word along u = (U₁ - U₀)/√2. So a word is its score s_w and its projection
x_w = uᵀv_w, and with a_w(χ) = exp(s_w)/Z(χ), x̄(χ) = Σ_w a_w x_w and y = ±1 for the class

    l(χ)    = log(1 + exp(-y √2 x̄)),      r(χ) = y √2 σ(-y √2 x̄)
    dx_w/dt = ⟨ r a_w ⟩                                                                  (eq 5)
    ds_w/dt = ⟨ r a_w (x_w - x̄) ⟩                                                       (eq 6)

in time = learning rate × step, where ⟨·⟩ is the mean over all texts and a word that stands k times
in a text counts k times. Both start at zero. Seeds, the length of embeddings and the order of
batches are gone: what is left is the counts of words in texts, and their labels. One topic word
among m others is :func:`fixed_linear_norm`, in closed form.

:func:`two_variable_flow` solves it, the limit of small steps. At a rate where a word that all texts
hold is pushed too far in one step, gradient descent leaves the flow, and
:func:`two_variable_descent` takes its steps.

**Adam** divides a running mean of the gradient by the root of a running mean of its square, entry
by entry. For a batch of B of the N texts the first follows E g, the second

    E g² = (E g)² + (⟨g_χ²⟩ - (E g)²) (N - B)/((N - 1) B),

so a word in few texts moves slower than η. The embedding moves by the sign of every entry of u, so
x_w moves ‖u‖₁ times as fast as a score would; for a random direction that is √(2d/π).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.special import expit

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64

Floats = NDArray[np.float64]
RTOL, ATOL = 1e-3, 1e-3
"""Tolerances of the solver, per step: a hundredth of what seeds differ by."""
BETAS = (0.9, 0.999)
"""Decay of the running means of g and of g², PyTorch's defaults."""
TOGETHER = 5
"""Steps of Adam that are taken at once."""
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class WordsOverTime:
    """What the two-variable system says.

    Args:
        times: shape ``(step,)``; learning rate × step, or steps of Adam.
        projections: x_w, shape ``(step, word)``.
        scores: s_w, shape ``(step, word)``.
    """

    times: Floats
    projections: Floats
    scores: Floats


def two_variable_flow(
    counts: sparse.csr_array, labels: NDArray[np.integer], times: Numbers
) -> WordsOverTime:
    """Integrate the system: gradient descent in the limit of small steps.

    Args:
        counts: how often each word stands in each text, shape ``(text, word)``.
        labels: the class of each text, 0 or 1.
        times: where to read the solution, ascending from 0 or later.
    """
    system = _Texts(counts, labels)
    times = _ascending(times)

    def velocity(_: float, state: Floats) -> Floats:
        x, s = np.split(state, 2)
        return np.concatenate(system.pull(x, s))

    start = np.zeros(2 * system.words)
    if times[-1] == 0:
        states = np.tile(start, (len(times), 1))
    else:
        found = solve_ivp(
            velocity, (0.0, times[-1]), start, "RK45", t_eval=times, rtol=RTOL, atol=ATOL
        )
        if not found.success:
            raise AttnscopeError(f"the two-variable system broke down: {found.message}")
        states = found.y.T
    return WordsOverTime(times, states[:, : system.words], states[:, system.words :])


def two_variable_descent(
    counts: sparse.csr_array, labels: NDArray[np.integer], steps: Numbers, *, rate: float
) -> WordsOverTime:
    """Follow the system by gradient descent at a finite rate, on all texts at once.

    Args:
        counts: how often each word stands in each text, shape ``(text, word)``.
        labels: the class of each text, 0 or 1.
        steps: after which steps to read it, whole numbers, ascending from 0 or later.
        rate: η.
    """
    if not rate > 0:
        raise AttnscopeError(f"rate = {rate:g}: expected more than 0.")
    system, asked = _Texts(counts, labels), _ascending(steps)
    if (asked != np.round(asked)).any():
        raise AttnscopeError(f"steps {asked[:5].tolist()}: expected whole numbers.")
    state, seen = np.zeros((2, system.words)), {}
    wanted = set(asked.tolist())
    for step in range(int(asked[-1]) + 1):
        if step in wanted:
            seen[step] = state.copy()
        state = state + rate * np.stack(system.pull(*state))
    path = np.stack([seen[int(step)] for step in asked])
    return WordsOverTime(asked, path[:, 0], path[:, 1])


def two_variable_adam(
    counts: sparse.csr_array,
    labels: NDArray[np.integer],
    steps: Numbers,
    *,
    rate: float,
    batch: int,
    dim: int,
) -> WordsOverTime:
    """Follow the system under Adam.

    Args:
        counts: how often each word stands in each text, shape ``(text, word)``.
        labels: the class of each text, 0 or 1.
        steps: after which steps to read it, ascending from 0 or later.
        rate: η.
        batch: B, texts in a batch.
        dim: d, length of embeddings.
    """
    for name, value in (("rate", rate), ("batch", batch), ("dim", dim)):
        if not value > 0:
            raise AttnscopeError(f"{name} = {value:g}: expected more than 0.")
    system, asked = _Texts(counts, labels), _ascending(steps)
    state = np.zeros((2, system.words))
    means, squares = np.zeros((2, 2, system.words))
    first, second = (beta**TOGETHER for beta in BETAS)
    drawn = min(batch, system.texts)
    spread = (system.texts - drawn) / (max(1, system.texts - 1) * drawn)
    speed = rate * np.array([[math.sqrt(2 * dim / math.pi)], [1.0]])
    done, seen, at = 0, [state.copy()], [0.0]
    while done < asked[-1]:
        pull = np.stack(system.pull(*state))
        square = pull**2 + spread * np.maximum(np.stack(system.squares(*state)) - pull**2, 0.0)
        means = first * means + (1 - first) * pull
        squares = second * squares + (1 - second) * square
        done += TOGETHER
        size = np.sqrt(squares / (1 - BETAS[1] ** done))
        state = state + TOGETHER * speed * means / (1 - BETAS[0] ** done) / (size + TINY)
        seen.append(state.copy())
        at.append(float(done))
    place = np.interp(asked, at, np.arange(len(at)))
    low = np.minimum(place.astype(int), len(at) - 1)
    high = np.minimum(low + 1, len(at) - 1)
    part = (place - low)[:, None, None]
    kept = np.stack(seen)
    path = (1 - part) * kept[low] + part * kept[high]
    return WordsOverTime(asked, path[:, 0], path[:, 1])


def mean_concentration(scores: Numbers, counts: sparse.csr_array) -> Floats:
    """Return the mean of 1 - H(α)/ln L over texts of two words or more, at each time.

    It is 0 for uniform attention and 1 for attention to one word. H(α) = ln Z - ⟨s⟩_α, so that no
    text has to be laid out.

    Args:
        scores: s_w, shape ``(..., word)``.
        counts: how often each word stands in each text, L words in all.
    """
    scores = float64(scores)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    kept = counts[np.flatnonzero(lengths > 1)]
    lengths = lengths[lengths > 1]
    if not len(lengths):
        raise AttnscopeError("no text of two words or more: expected some to attend to.")
    flat = scores.reshape(-1, scores.shape[-1])
    found = np.empty(len(flat))
    for row, own in enumerate(flat):
        shifted = own - own.max()
        factors = np.exp(shifted)
        z = kept @ factors
        entropy = np.log(z) - (kept @ (factors * shifted)) / z
        found[row] = float(np.mean(1 - entropy / np.log(lengths)))
    return found.reshape(scores.shape[:-1])


class _Texts:
    """The texts, ready for taking means at many times."""

    def __init__(self, counts: sparse.csr_array, labels: NDArray[np.integer]) -> None:
        labels = np.asarray(labels)
        if counts.shape[0] != len(labels) or not len(labels):
            raise AttnscopeError(
                f"{counts.shape[0]} texts and {len(labels)} labels: expected as many, one or more."
            )
        if not np.isin(labels, (0, 1)).all():
            raise AttnscopeError(
                f"labels are {np.unique(labels)[:5].tolist()}: expected the classes 0 and 1."
            )
        if not np.asarray(counts.sum(axis=1)).all():
            raise AttnscopeError("a text without any word: expected one word or more in each.")
        self.texts, self.words = (int(size) for size in counts.shape)
        self._counts = sparse.csr_array(counts, dtype=np.float64)
        self._by_word = sparse.csr_array(self._counts.T)
        self._squared = self._by_word.multiply(self._by_word).tocsr()
        self._sign = 2.0 * labels - 1

    def _errors(self, x: Floats, s: Floats) -> tuple[Floats, Floats, Floats]:
        """Return exp(s), x̄ of each text, and r/Z of each text."""
        factors = np.exp(s)
        z = self._counts @ factors
        context = (self._counts @ (factors * x)) / z
        margin = self._sign * math.sqrt(2)
        return factors, context, margin * expit(-margin * context) / z

    def pull(self, x: Floats, s: Floats) -> tuple[Floats, Floats]:
        """Return dx/dt and ds/dt."""
        factors, context, error = self._errors(x, s)
        error = error / len(error)
        to_x = factors * (self._by_word @ error)
        return to_x, x * to_x - factors * (self._by_word @ (error * context))

    def squares(self, x: Floats, s: Floats) -> tuple[Floats, Floats]:
        """Return ⟨g²⟩ of single texts, for both variables."""
        factors, context, error = self._errors(x, s)
        square = error**2 / len(error)
        own = self._squared @ square
        cross = self._squared @ (square * context)
        others = self._squared @ (square * context**2)
        score = x**2 * own - 2 * x * cross + others
        return factors**2 * own, factors**2 * np.maximum(score, 0.0)


def _ascending(times: Numbers) -> Floats:
    found = float64(times)
    if found.ndim != 1 or not len(found) or found[0] < 0 or (np.diff(found) < 0).any():
        raise AttnscopeError(
            f"times {found.ravel()[:5].tolist()}: expected numbers from 0 on, ascending."
        )
    return found
