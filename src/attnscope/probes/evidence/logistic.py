"""Logistic regression on bags of words, with as many classes as there are, in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from attnscope.probes.evidence.bags import Floats, LabelledBags

STEPS = 100
"""Steps of L-BFGS at most; a ranking of words does not change after some dozens."""


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted classifier: p(c | x) = softmax(x W + b).

    Args:
        weights: W, shape ``(word, class)``; they sum to 0 over classes.
        bias: b, shape ``(class,)``.
    """

    weights: Floats
    bias: Floats

    def guess(self, features: sparse.csr_array) -> NDArray[np.int64]:
        """Return the likeliest class of each row."""
        return np.asarray(features @ self.weights + self.bias).argmax(axis=1)


def rarity(bags: LabelledBags) -> Floats:
    """idf_w = log((1 + N) / (1 + n_w)) + 1: how rare a word is, N texts, n_w of them with it."""
    return np.log((1 + len(bags)) / (1 + bags.texts_with)) + 1


def tf_idf(counts: sparse.csr_array, idf: Floats) -> sparse.csr_array:
    """Return counts times rarity, each row of length 1."""
    weighted = sparse.csr_array(
        (counts.data * idf[counts.indices], counts.indices, counts.indptr), counts.shape
    )
    norms = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    return sparse.csr_array(
        (weighted.data / np.maximum(norms[rows], 1e-12), counts.indices, counts.indptr),
        counts.shape,
    )


def fit_logistic(
    features: sparse.csr_array, labels: NDArray[np.int64], classes: int, penalty: float = 1.0
) -> Logistic:
    """Minimise Σ -log p(label) + penalty/2 ‖W‖².

    Args:
        features: shape ``(text, feature)``.
        labels: the class of each row.
        classes: how many classes there are.
        penalty: how strongly large weights are held back.
    """
    n, width = features.shape
    target = np.eye(classes)[labels]
    across = features.T.tocsr()

    def loss(flat: Floats) -> tuple[float, Floats]:
        table = flat.reshape(width + 1, classes)
        logits = features @ table[:-1] + table[-1]
        value = -float(log_softmax(logits, axis=1)[np.arange(n), labels].sum())
        value += 0.5 * penalty * float((table[:-1] ** 2).sum())
        wrong = softmax(logits, axis=1) - target
        slope = np.concatenate([across @ wrong + penalty * table[:-1], wrong.sum(axis=0)[None]])
        return value, slope.ravel()

    start = np.zeros((width + 1) * classes)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    table = found.x.reshape(width + 1, classes)
    return Logistic(table[:-1] - table[:-1].mean(axis=1, keepdims=True), table[-1])
