"""Where the proxy of Snell 2021 starts to move: eq 15, its erratum, and any finite width.

For e_i, W_o ~ N(0, I_d/d) and d → ∞ the *logits* Θ = e Wᵀ start with

    dΘ_io/dτ = 2 (C_io - (1/|O|) Σ_o' C_io')                                        (eq 54, 55)

The paper prints the same for the *probabilities* θ_i = softmax(Θ_i) (eq 15). That is too large by
|O|: at Θ = 0 the softmax has the derivative (1/|O|)(1[o = o'] - 1/|O|), so

    dθ_io/dτ = (2/|O|) (C_io - (1/|O|) Σ_o' C_io')                             (eq 15, corrected)

The order of the output words is the same in both, and that is all the paper goes on to use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import softmax

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.snell2021.grams import Grams
from attnscope.theory.snell2021.pair_bags import PairBags

Counts: TypeAlias = Numbers | sparse.csr_array
"""A count table C, dense or sparse, of shape ``(input word, output word)``."""


@dataclass(frozen=True, eq=False)
class Derivative:
    """The derivative by time at the start of training, input word by output word.

    Args:
        logits: of (W e_i)_o.
        probabilities: of θ_io = softmax(W e_i)_o.
    """

    logits: np.ndarray
    probabilities: np.ndarray


def limit_derivative(counts: Counts) -> Derivative:
    """Return the derivative at infinite width: eq 54 for logits, eq 15 corrected for θ.

    >>> limit_derivative([[3.0, 1.0]]).probabilities.tolist()
    [[1.0, -1.0]]
    """
    table = dense(counts)
    logits = 2 * (table - table.mean(axis=1, keepdims=True))
    return Derivative(logits, logits / table.shape[1])


def printed_derivative(counts: Counts) -> np.ndarray:
    """Return dθ/dτ as eq 15 prints it: |O| times too large."""
    return limit_derivative(counts).logits


def exact_derivative(grams: Grams, bags: PairBags) -> Derivative:
    """Return the derivative at the width and the start that the inner products come from.

    No limit is taken and no gradient of size d is formed: with ``Grams.of(e, W)`` it costs the
    products e Wᵀ, e eᵀ and W Wᵀ, also at d = 200,000.
    """
    logits = grams.velocity(bags).logits
    theta = softmax(grams.logits, axis=1)
    mean = (theta * logits).sum(axis=1, keepdims=True)
    return Derivative(logits, theta * (logits - mean))


def expected_error(bags: PairBags, width: int) -> float:
    """How far the logits' derivative at a finite width is from its limit. Beyond Snell 2021.

    √E‖dΘ/dτ - 2G₀‖²_F to leading order, with G₀ = C - mean_o C and S = Bᵀ diag(T) B:

        √( ((|I| + |O| + 2) ‖G₀‖² + 4 (|O| - 1) ‖S‖²/|O|²) / d ).

    The first part is what W Wᵀ and e eᵀ miss to the identity (Wishart matrices: E(K - I)² =
    (n + 1)/d), the second is that predictions do not start uniform. All cross terms vanish.
    """
    if width < 1:
        raise AttnscopeError(f"width = {width}: expected 1 or more.")
    centred = limit_derivative(bags.counts).logits / 2
    inputs, outputs = centred.shape
    overlap = (bags.source.T @ sparse.diags_array(bags.lengths) @ bags.source).toarray()
    rows = (inputs + outputs + 2) * (centred**2).sum()
    start = 4 * (outputs - 1) / outputs**2 * (overlap**2).sum()
    return float(np.sqrt((rows + start) / width))


def early_probabilities(counts: Counts, time: float) -> np.ndarray:
    """θ(τ) for small τ at infinite width: softmax_o(2τ C_io), right to first order.

    Args:
        counts: C.
        time: τ; the prediction is good while 2τ(C - mean_o C) is small against 1.

    Returns:
        Shape ``(input word, output word)``; β^px_tl is its entry (x_l, y_t).
    """
    return np.asarray(softmax(time * limit_derivative(counts).logits, axis=1))


def slope(values: Numbers, reference: Numbers) -> float:
    """Return ⟨values, reference⟩/‖reference‖²: 1 where the two agree up to orthogonal noise."""
    values, reference = float64(values), float64(reference)
    square = float((reference**2).sum())
    if square == 0:
        raise AttnscopeError(
            "reference is zero everywhere: expected a derivative that is not, such as that of a "
            "count table whose rows are not constant."
        )
    return float((values * reference).sum() / square)


def dense(counts: Counts) -> np.ndarray:
    """Return a count table as a dense array, or raise when it is none."""
    table = sparse.csr_array(counts).toarray() if sparse.issparse(counts) else float64(counts)
    if table.ndim != 2 or table.size == 0:
        raise AttnscopeError(
            f"counts of shape {table.shape}: expected a table, (input word, output word)."
        )
    return np.asarray(table, dtype=np.float64)
