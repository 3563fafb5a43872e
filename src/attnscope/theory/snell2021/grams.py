"""The proxy of Snell 2021 in inner products: its gradient flow at any width, exactly.

With embeddings e_i and output rows W_o, let Θ = e Wᵀ, K_e = e eᵀ and K_W = W Wᵀ. Under gradient
flow of the loss (eq 14) and with G = Bᵀ (Y - diag(T) P), where P holds softmax(BΘ) of every pair,

    dΘ/dτ = G K_W + K_e G,    dK_e/dτ = G Θᵀ + Θ Gᵀ,    dK_W/dτ = Gᵀ Θ + Θᵀ G.

P depends on Θ alone, so the three matrices move by themselves, and the width d is in their start
only. Nothing of size d × d is formed. With N(0, I_d/d) and d → ∞ the start is (0, I, I), which
knows nothing but the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64
from attnscope.theory.snell2021.pair_bags import PairBags


@dataclass(frozen=True, eq=False)
class Grams:
    """Inner products of the proxy's parameters, or their derivatives by time.

    Args:
        logits: Θ = e Wᵀ, shape ``(input word, output word)``.
        source: K_e = e eᵀ.
        target: K_W = W Wᵀ.
    """

    logits: np.ndarray
    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, embeddings: Numbers, outputs: Numbers) -> Grams:
        """Take the products of e ``(input word, d)`` and W ``(output word, d)``."""
        e, w = float64(embeddings), float64(outputs)
        if e.ndim != 2 or w.ndim != 2 or e.shape[1] != w.shape[1]:
            raise AttnscopeError(
                f"embeddings of shape {e.shape} and outputs of shape {w.shape}: expected "
                "(input word, d) and (output word, d)."
            )
        return cls(e @ w.T, e @ e.T, w @ w.T)

    @classmethod
    def infinite_width(cls, bags: PairBags) -> Grams:
        """Return the start at d → ∞: logits 0, all rows orthonormal."""
        inputs, outputs = bags.source.shape[1], bags.target.shape[1]
        return cls(np.zeros((inputs, outputs)), np.eye(inputs), np.eye(outputs))

    def velocity(self, bags: PairBags) -> Grams:
        """Return dΘ/dτ, dK_e/dτ and dK_W/dτ under gradient flow of eq 14."""
        pull = self.pull(bags)
        source, target = pull @ self.logits.T, pull.T @ self.logits
        return Grams(pull @ self.target + self.source @ pull, source + source.T, target + target.T)

    def pull(self, bags: PairBags) -> np.ndarray:
        """Return G = Bᵀ (Y - diag(T) P), shape of the logits."""
        expected = bags.lengths[:, None] * softmax(bags.source @ self.logits, axis=1)
        return np.asarray(bags.counts.toarray() - bags.source.T @ expected)
