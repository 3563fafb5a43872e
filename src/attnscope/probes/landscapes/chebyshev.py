"""Polynomials through Chebyshev points, which smooth functions are read off.

The error falls geometrically with the degree if the function is analytic around the interval, and
slowly if it has kinks (Trefethen, "Approximation Theory and Approximation Practice", chapters 7
and 8).
"""

from __future__ import annotations

import numpy as np


def points(first: float, last: float, degree: int) -> np.ndarray:
    """Return the points -cos(πj/n), j = 0..n, moved onto an interval.

    Points that two degrees share are the same numbers.
    """
    # From the fraction in lowest terms, so that 8/16 and 4/8 round in the same way.
    halves = np.array([_cosine(j, degree) for j in range(degree + 1)])
    return (last + first) / 2 - (last - first) / 2 * halves


def reading(nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the matrix from values at Chebyshev points to the polynomial's values elsewhere.

    Barycentric formula with weights (-1)ʲ, halved at both ends (Salzer 1972).
    """
    weights = (-1.0) ** np.arange(len(nodes))
    weights[[0, -1]] /= 2
    apart = at[:, None] - nodes
    hits = apart == 0
    terms = weights / np.where(hits, 1.0, apart)
    matrix = terms / terms.sum(1, keepdims=True)
    return np.where(hits.any(1, keepdims=True), hits.astype(float), matrix)


def _cosine(j: int, degree: int) -> float:
    shared = int(np.gcd(j, degree))
    return float(np.cos(np.pi * (j // shared) / (degree // shared)))
