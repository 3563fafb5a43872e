"""Theorem 1 of Li 2023: optimal embeddings, with W^K = W^Q = 0, W^V = I and squared loss.

E = W^Eᵀ W^E is optimal iff it belongs to the family of :mod:`attnscope.theory.li2023.family` with
E_i0 = -c₂ u_i. Two places of the paper do not hold as printed:

1. The main text gives the bias to all words. For [MASK] it must be 0, as in the appendix: a member
   of the family predicts 0 there.
2. The "simplest example" W^E = √c₃ I has E = c₃ I. With u_0 = 0 the theorem asks for E_00 = 0, and
   E_00 = c₃ predicts c₃ m instead of 0 on [MASK]: .1387 with BERT's masks (.1386 with the main
   text's bias at T = v = 10). The example that holds is c₃ diag(0, 1, ..., 1).
"""

from __future__ import annotations

import numpy as np

from attnscope.theory.arrays import Numbers
from attnscope.theory.li2023 import family
from attnscope.theory.li2023.setting import Topics, constants


def embedding_bias(setting: Topics, as_printed: bool = False) -> np.ndarray:
    """b_i = -p_m p_r / ((1-(1-p_c)p_m) Tv) of words, and b_0 = 0, shape ``(word,)``.

    Args:
        setting: T, v, τ and masks.
        as_printed: give [MASK] the words' bias too, as the main text has it.
    """
    known = constants(setting)
    bias = np.full(setting.topics * setting.words + 1, -known.c3 * known.absent)
    if not as_printed:
        bias[0] = 0.0
    return bias


def embedding_member(
    setting: Topics, u: Numbers = 0.0, spread: Numbers | None = None
) -> np.ndarray:
    """Build the optimal E of u_0..u_Tv; see :func:`family.member`.

    Not every member is a Gram matrix, as E must be; :func:`gram_shift` gives u for some that are.
    """
    return family.member(setting, u, 0.0, spread)


def embedding_family_residual(matrix: Numbers, setting: Topics) -> np.ndarray:
    """How far each row of E is from Theorem 1's conditions; see :func:`family.family_residual`."""
    return family.family_residual(matrix, setting, 0.0)


def embedding_residual(matrix: Numbers, setting: Topics, as_printed: bool = False) -> np.ndarray:
    """Error of E's prediction in each row; see :func:`family.prediction_residual`.

    >>> from attnscope.theory.li2023 import TopicSetting, printed_example
    >>> setting = TopicSetting(topics=10, words=10, tau=3)
    >>> residual = embedding_residual(printed_example(setting), setting, as_printed=True)
    >>> int(residual.argmax()), round(float(residual[0]), 4)
    (0, 0.1386)
    """
    return family.prediction_residual(matrix, setting, embedding_bias(setting, as_printed))


def printed_example(setting: Topics) -> np.ndarray:
    """E = c₃ I, the paper's "simplest example": no optimum, as its [MASK] row shows."""
    return constants(setting).c3 * np.eye(setting.topics * setting.words + 1)


def corrected_example(setting: Topics) -> np.ndarray:
    """E = c₃ diag(0, 1, ..., 1), the example with its [MASK] row set right."""
    matrix = printed_example(setting)
    matrix[0, 0] = 0.0
    return matrix
