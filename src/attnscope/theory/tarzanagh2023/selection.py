r"""Which tokens are chosen, and whether a choice can last.

Scores are :math:`\gamma_{it} = y_i v \cdot x_{it}`. A choice is globally optimal if every chosen
token has the highest score of its input, and locally optimal if it has a higher score than every
token on the support of its SVM: only those compete with it in the end.
"""

from __future__ import annotations

import numpy as np

from attnscope.theory.tarzanagh2023.svm import AttentionSvm


def chosen_tokens(features: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return the token with the largest logit of each input."""
    return np.asarray((features @ parameters).argmax(axis=1))


def optimal_tokens(scores: np.ndarray) -> np.ndarray:
    """Return the token with the highest score of each input."""
    return np.asarray(scores.argmax(axis=1))


def is_locally_optimal(scores: np.ndarray, chosen: np.ndarray, svm: AttentionSvm) -> bool:
    """Return whether every chosen token beats all tokens on the support of its SVM.

    A choice that no θ can keep apart is not locally optimal.
    """
    own = np.take_along_axis(scores, np.asarray(chosen)[:, None], axis=1)
    return svm.feasible and bool((scores < own)[svm.support].all())


def swapped(scores: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the choice with one token replaced, by the next best: that of the closest scores.

    It is what a claim about the right choice is held against. An input of one token has no other.
    """
    inputs = np.arange(len(scores))
    rest = np.array(scores, dtype=float)
    rest[inputs, chosen] = -np.inf
    second = rest.argmax(axis=1)
    gaps = np.abs(scores[inputs, chosen] - rest[inputs, second])
    place = int(gaps.argmin())
    other = np.array(chosen)
    other[place] = second[place]
    return other
