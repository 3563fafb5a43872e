"""Theorem 2 of Li 2023: the one W^V that Stage 1 has with weight decay, at any λ.

    min over W of  E_S ‖W y_S - P_S‖² + λ ‖W‖_F²,

the mean being over the sets S of τ topics: with a sum over all C(T, τ) sets instead of the mean,
λ would be C(T, τ) times weaker. The paper gives the limit λ → 0. But the problem splits by
symmetry into two that are one-dimensional, so the solution is closed at every λ:

* what all documents share, y = m e_0 + (1-m)/(Tv) 1 and P = 1/(Tv) 1, is a single data point:
  its part of W is P yᵀ/(‖y‖² + λ);
* what tells topics apart has covariance a (I - 11ᵀ/T), a = τ (T-τ)/(T (T-1)), over topics: its
  part of W is k/v on blocks minus k/(Tv) everywhere, with s = 1/(c₃ τ v) = p₁ - p₂ and
  k = (s a/τ)/(s² a v + λ), which is c₃ at λ = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.li2023.setting import Topics, check_structure, constants, topic_of


@dataclass(frozen=True)
class ValueBlocks:
    """A W^V that treats topics and words alike; its [MASK] row is zero.

    Args:
        mask: W_i0, what a word's row has in [MASK]'s column.
        same: W_ij of two different words of one topic.
        different: W_ij of two words of different topics.
        diagonal: W_ii; equal to ``same`` in Theorem 2.
    """

    mask: float
    same: float
    different: float
    diagonal: float

    def matrix(self, setting: Topics) -> np.ndarray:
        """W^V in full, shape ``(word, word)`` with [MASK] first."""
        topic = topic_of(setting)
        matrix = np.zeros((len(topic) + 1, len(topic) + 1))
        matrix[1:, 0] = self.mask
        matrix[1:, 1:] = np.where(topic[:, None] == topic, self.same, self.different)
        words = np.arange(1, len(matrix))
        matrix[words, words] = self.diagonal
        return matrix


def value_blocks(setting: Topics) -> ValueBlocks:
    """Theorem 2: the limit λ → 0, in the paper's own form.

        W_i0 = (c₂c₃ - c₁Tv)/(c₂² + Tv),    W_0j = 0,
        W_diff = -(c₁c₂ + c₃)/(c₂² + Tv),    W_same = W_diff + c₃/v

    It is the optimum of least norm, and τ does not enter.

    >>> from attnscope.theory.li2023 import TopicSetting
    >>> found = value_blocks(TopicSetting(topics=10, words=10, tau=3))
    >>> round(found.mask, 7), round(found.different, 7), round(found.same, 7)
    (0.0541908, -0.0075867, 0.1080202)
    """
    check_structure(setting)
    known, size = constants(setting), setting.topics * setting.words
    below = known.c2**2 + size
    different = -(known.c1 * known.c2 + known.c3) / below
    same = different + known.c3 / setting.words
    return ValueBlocks((known.c2 * known.c3 - known.c1 * size) / below, same, different, same)


def ridge_value_blocks(setting: Topics, weight_decay: float) -> ValueBlocks:
    """The exact solution at λ = ``weight_decay``; at 0 it is Theorem 2.

    Args:
        setting: T, v, τ and masks.
        weight_decay: λ ≥ 0 of L + λ ‖W‖_F². An optimiser that subtracts lr·wd·W from W has wd = 2λ.
    """
    check_structure(setting)
    if not weight_decay >= 0:
        raise AttnscopeError(f"weight_decay = {weight_decay:g}: expected a number of 0 or more.")
    known, size, tau = constants(setting), setting.topics * setting.words, setting.tau
    spread = tau * (setting.topics - tau) / (setting.topics * (setting.topics - 1))
    step = known.present - known.absent
    contrast = (step * spread / tau) / (step**2 * spread * setting.words + weight_decay)
    shared = (1 - known.mask) / size
    scale = 1 / (size * (known.mask**2 + size * shared**2 + weight_decay))
    different = scale * shared - contrast / size
    same = different + contrast / setting.words
    return ValueBlocks(scale * known.mask, same, different, same)


def diagonal_value_blocks(setting: Topics) -> ValueBlocks:
    """The optimum of Theorem 4 that Theorem 5 starts from: c₃ on the diagonal, -c₁ for [MASK]."""
    check_structure(setting)
    known = constants(setting)
    return ValueBlocks(mask=-known.c1, same=0.0, different=0.0, diagonal=known.c3)
