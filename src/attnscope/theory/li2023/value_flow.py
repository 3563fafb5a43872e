"""W^V at every time and at the end, for documents of any length. Beyond Li 2023, in closed form.

Uniform attention makes the squared loss quadratic in W = W^V: with M = E yyᵀ and C = E xyᵀ, x
being the word to predict and y the shares of the visible words,

    dW/dt = -2 (W (M + λ) - C),    W(t) = W* + (W(0) - W*) exp(-2 (M + λ) t),    W* = C (M + λ)⁻¹.

The theorems take documents of infinite length. In one of N words the shares are means of N draws,
and the position to predict is one of them, which with probability p_c shows the word itself:

    M_N = M + (diag(E y) - M)/N,    C_N = C + (p_c/N) (diag(E P) - E PPᵀ).

Both corrections are of order 1/N. But M has v - 1 directions a topic in which it is zero, and there
they are all there is: the limits of long documents and of λ → 0 do not commute. Within a topic

    W_ii - W_ij = p_c / (1 - m + λTv/h),    m = p_m (1-p_c-p_r),    h = E 1/N,

which is zero in Theorem 2, where h → 0 first, and p_c/(1 - m) at any length if λ → 0 first. Masks
are taken as unconditioned: that one of 100 words is selected is certain to 1e-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from attnscope.tasks import TopicDocuments, TopicPopulation
from attnscope.theory.li2023.setting import constants


@dataclass(frozen=True)
class ValueSolution:
    """The flow of W^V under uniform attention and squared loss.

    Args:
        population: topics and masks.
        penalty: λ.
        shortness: h = E 1/N over documents, 0 for documents of infinite length.
    """

    population: TopicPopulation
    penalty: float
    shortness: float = 0.0

    @cached_property
    def _modes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return eigenvalues and eigenvectors of M, and C in their basis."""
        moments, h = self.population.moments, self.shortness
        base = self.population.visible(np.zeros((1, self.population.topics), np.bool_))[0]
        # y = base + P/c₃, so that E PPᵀ follows from E Pyᵀ.
        c3 = constants(self.population).c3
        originals = c3 * (moments.cross - np.outer(moments.original, base))
        second = moments.second + h * (np.diag(moments.visible) - moments.second)
        cross = moments.cross + self.population.p_c * h * (np.diag(moments.original) - originals)
        size, basis = np.linalg.eigh(second)
        # M is singular; where it is zero up to rounding, so is C.
        return np.where(size > 1e-12 * size[-1], size, 0.0), basis, cross @ basis

    @cached_property
    def end(self) -> np.ndarray:
        """W* of least norm, shape ``(word, word)``."""
        size, basis, cross = self._modes
        rate = size + self.penalty
        alive = rate > 0
        ends: np.ndarray = np.where(alive, cross / np.where(alive, rate, 1.0), 0.0) @ basis.T
        return ends

    def at(self, time: float, start: np.ndarray) -> np.ndarray:
        """W(t) from W(0) = ``start``, shape ``(word, word)``."""
        size, basis, _ = self._modes
        left = np.exp(-2 * (size + self.penalty) * time)
        there: np.ndarray = self.end + ((start - self.end) @ basis * left) @ basis.T
        return there


def shortness(task: TopicDocuments) -> float:
    """Return h = E 1/N over the lengths of a task's documents."""
    low, high = task.lengths
    return float(np.mean(1 / np.arange(low, high + 1)))


def diagonal_excess(population: TopicPopulation, penalty: float, short: float) -> float:
    """W_ii - W_ij of two words of one topic at the end, p_c / (1 - m + λTv/h)."""
    size = population.topics * population.words
    shown = 1 - constants(population).mask
    return population.p_c / (shown + penalty * size / short)
