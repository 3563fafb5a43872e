"""The optima of Stage 1 without regularisation, for embeddings (Theorem 1) and values (Theorem 4).

Under uniform attention every position predicts M y_S + b. For long documents and squared loss

    L = E_S ‖M y_S + b - P_S‖² + 1 - 1/(τv),

so M is optimal iff it predicts P_S for every set of topics. Row i of M enters by its [MASK] entry
and its sums over topics alone. With τ < T the solutions are, for any u_0..u_Tv,

    Σ_{l∈t} M_il = u_i v + c₃ [t = topic(i)],    M_i0 = o_i - c₂ u_i,    o_0 = 0,

with o_i = 0 for Theorem 1, where the bias takes the words that came in by random replacement, and
o_i = -c₁ for Theorem 4, where b = 0. Hence on average over l the same topic beats the others by
c₃/v = 1/(v (1-(1-p_c) p_m)), whatever u is.
"""

from __future__ import annotations

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.li2023.setting import (
    Topics,
    block_sums,
    check_structure,
    constants,
    topic_of,
)


def topic_gap(setting: Topics) -> float:
    """Average same-topic minus different-topic entry of every optimum, c₃/v (Theorems 1 to 4).

    >>> from attnscope.theory.li2023 import TopicSetting
    >>> round(topic_gap(TopicSetting(topics=10, words=10, tau=3)), 7)
    0.1156069
    """
    check_structure(setting)
    return constants(setting).c3 / setting.words


def measured_gap(matrix: Numbers, setting: Topics) -> float:
    """Average same-topic minus different-topic entry of a matrix over the words.

    As in the theorems, the same topic includes the word itself; [MASK] takes no part.
    """
    check_structure(setting)
    sums = block_sums(float64(matrix), setting)[1:]
    same = sums[np.arange(len(sums)), topic_of(setting)]
    others = (sums.sum(axis=1) - same) / (setting.topics - 1)
    return float((same - others).mean()) / setting.words


def prediction_residual(matrix: Numbers, setting: Topics, bias: Numbers = 0.0) -> np.ndarray:
    """Largest |(M y_S + b - P_S)_i| over all sets S of τ topics, for every row i, exactly.

    A row's error is a constant plus one term for each topic of S, so that its extremes over S take
    the τ largest or the τ smallest terms: no enumeration.

    Args:
        matrix: E or W^V, shape ``(word, word)`` with [MASK] first.
        setting: T, v, τ and masks.
        bias: b, one number or one a row.

    Returns:
        Shape ``(word,)``; zero iff the matrix is a global optimum with this bias.
    """
    check_structure(setting)
    matrix, known, tau = float64(matrix), constants(setting), setting.tau
    sums = block_sums(matrix, setting)
    base = known.mask * matrix[:, 0] + known.absent * sums.sum(axis=1) + float64(bias)
    terms = (known.present - known.absent) * sums
    rows = np.arange(1, len(matrix))
    terms[rows, topic_of(setting)] -= 1 / (tau * setting.words)
    terms.sort(axis=1)
    low, high = base + terms[:, :tau].sum(axis=1), base + terms[:, -tau:].sum(axis=1)
    return np.maximum(np.abs(low), np.abs(high))


def member(
    setting: Topics, u: Numbers, mask_offset: float, spread: Numbers | None = None
) -> np.ndarray:
    """Build the member of the family that belongs to u.

    Args:
        setting: T, v, τ and masks.
        u: u_0..u_Tv, shape ``(word,)``.
        mask_offset: o_i of the rows i ≥ 1.
        spread: entries added within the rows, shape ``(word, Tv)``. Their mean over each topic is
            taken out, as the theorems fix sums only. Without it rows are constant on topics.
    """
    check_structure(setting)
    known, size = constants(setting), setting.topics * setting.words
    u = np.broadcast_to(float64(u), size + 1)
    topic = topic_of(setting)
    matrix = np.empty((size + 1, size + 1))
    matrix[:, 1:] = u[:, None]
    matrix[1:, 1:] += (topic[:, None] == topic) * (known.c3 / setting.words)
    matrix[:, 0] = -known.c2 * u
    matrix[1:, 0] += mask_offset
    if spread is not None:
        shape = (size + 1, setting.topics, setting.words)
        within = float64(spread).reshape(shape)
        matrix[:, 1:] += (within - within.mean(axis=-1, keepdims=True)).reshape(size + 1, size)
    return matrix


def family_residual(matrix: Numbers, setting: Topics, mask_offset: float) -> np.ndarray:
    """How far each row is from the conditions, with the u_i that suits the row best.

    The conditions of row i are T + 1 linear equations in u_i, of which M_i0 = o_i - c₂ u_i is one
    and the topics' mean entries are the others. u_i is their least-squares solution.

    Returns:
        Largest violation in each row, in units of a matrix entry, shape ``(word,)``.
    """
    check_structure(setting)
    matrix, known = float64(matrix), constants(setting)
    means = block_sums(matrix, setting) / setting.words
    rows = np.arange(1, len(matrix))
    means[rows, topic_of(setting)] -= known.c3 / setting.words
    column = matrix[:, 0].copy()
    column[1:] -= mask_offset
    equations = np.column_stack([column, means])
    direction = np.r_[-known.c2, np.ones(setting.topics)]
    u = equations @ direction / (direction @ direction)
    return np.asarray(np.abs(equations - u[:, None] * direction).max(axis=1))


def gram_shift(setting: Topics, u: float) -> np.ndarray:
    """u_0..u_Tv for which the member of Theorem 1 is a Gram matrix: u_i = u, u_0 = -c₂ u.

    E = W^Eᵀ W^E is symmetric and has no negative eigenvalue, which the family alone does not say.
    With this choice E = u n nᵀ + (c₃/v) B Bᵀ, with n = (-c₂, 1, ..., 1) and B the words' topics.

    Raises:
        AttnscopeError: u is negative.
    """
    if u < 0:
        raise AttnscopeError(f"u = {u:g}: expected 0 or more, as a Gram matrix has E_00 ≥ 0.")
    size = setting.topics * setting.words
    return np.r_[-constants(setting).c2 * u, np.full(size, float(u))]
