"""How much of the label single words carry, and whether the data suffice to tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, xlogy

from attnscope.probes.evidence.bags import Floats, LabelledBags

HALF = 0.5
"""Added to every count of a 2 × 2 table, so that the error of its log odds is finite."""


def label_entropy(bags: LabelledBags) -> float:
    """Return H(C) in bits."""
    return float(-xlogy(bags.prior, bags.prior).sum() / np.log(2))


def information(bags: LabelledBags) -> Floats:
    """Return I(word in text; class) of every word, in bits.

    I = H(C) + Σ_{x ∈ {0, 1}} Σ_c p(x, c) log p(c | x)
    """
    n = len(bags)
    total = np.zeros(bags.words)
    for inside in (bags.by_class, n * bags.prior - bags.by_class):
        # Counts are whole; a subtraction may leave a rounding error below zero.
        counts = np.maximum(inside, 0.0)
        total += xlogy(counts, counts).sum(axis=1) - xlogy(counts.sum(axis=1), counts.sum(axis=1))
    return np.maximum(label_entropy(bags) + total / n / np.log(2), 0.0)


@dataclass(frozen=True, eq=False)
class Certainty:
    """How far a word is from saying nothing, in standard errors.

    Args:
        favoured: the class that each word speaks for most surely.
        z: signed root of the likelihood ratio: √G, with G = 2 N ln 2 times the information, in
            bits, of the word's presence about that class; close to a normal deviate by chance.
        log_odds: log odds ratio of that class for texts with and without the word.
        error: its standard error (Woolf 1955, with a half added to each count).
        critical: how many standard errors are beyond chance (5 %) for this many words, by
            Bonferroni's bound.
    """

    favoured: np.ndarray
    z: Floats
    log_odds: Floats
    error: Floats
    critical: float

    @property
    def sure(self) -> np.ndarray:
        """Whether a word is beyond chance though many were looked at."""
        return self.z > self.critical


def certainty(bags: LabelledBags) -> Certainty:
    """Return the class that each word speaks for, and how surely.

    Each word and class make a 2 × 2 table of texts with and without the word, of the class and of
    others.
    """
    total, n = bags.prior * len(bags), float(len(bags))
    with_word = bags.texts_with[:, None]
    inside, outside = bags.by_class, with_word - bags.by_class
    cells = [
        np.maximum(cell, 0.0) for cell in (inside, outside, total - inside, n - total - outside)
    ]
    fitted = [
        share * size / n
        for share, size in (
            (with_word, total),
            (with_word, n - total),
            (n - with_word, total),
            (n - with_word, n - total),
        )
    ]
    deviance = 2 * sum(
        xlogy(cell, np.where(cell > 0, cell / np.maximum(expected, 1e-300), 1.0))
        for cell, expected in zip(cells, fitted, strict=True)
    )
    a, b, c, d = (cell + HALF for cell in cells)
    log_odds, error = np.log(a * d / (b * c)), np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    z = np.sign(cells[0] - fitted[0]) * np.sqrt(np.maximum(deviance, 0.0))
    favoured, rows = z.argmax(axis=1), np.arange(bags.words)
    tests = int((bags.texts_with > 0).sum()) * (bags.classes if bags.classes > 2 else 1)
    return Certainty(
        favoured,
        z[rows, favoured],
        log_odds[rows, favoured],
        error[rows, favoured],
        float(-ndtri(0.025 / max(tests, 1))),
    )


def texts_needed(texts: int, z: float, critical: float) -> int:
    """Return how many texts it would take until a word of so many standard errors is beyond chance.

    A standard error falls with the square root of the number of texts: n (z_critical / z)². It
    asks for ten times as much where nothing points anywhere.

    >>> texts_needed(50, 2.0, 4.0)
    200
    """
    return int(np.ceil(texts * min((critical / max(z, 1e-9)) ** 2, 10.0)))
