"""Lemma 1 and Theorem 4 of Li 2023: optimal W^V without regularisation.

One-hot embeddings, uniform attention, b = 0, squared loss. W^V is optimal iff it belongs to the
family of :mod:`attnscope.theory.li2023.family` with W_i0 = -c₁ - c₂ u_i for words, W_00 = -c₂ u_0.
"""

from __future__ import annotations

import numpy as np

from attnscope.theory.arrays import Numbers
from attnscope.theory.li2023 import family
from attnscope.theory.li2023.setting import Topics, constants


def value_member(setting: Topics, u: Numbers = 0.0, spread: Numbers | None = None) -> np.ndarray:
    """Build the optimal W^V of u_0..u_Tv; see :func:`family.member`."""
    return family.member(setting, u, -constants(setting).c1, spread)


def value_family_residual(matrix: Numbers, setting: Topics) -> np.ndarray:
    """How far each row of W^V is from the conditions; see :func:`family.family_residual`."""
    return family.family_residual(matrix, setting, -constants(setting).c1)


def value_residual(matrix: Numbers, setting: Topics) -> np.ndarray:
    """Error of W^V's prediction in each row; see :func:`family.prediction_residual`."""
    return family.prediction_residual(matrix, setting)
