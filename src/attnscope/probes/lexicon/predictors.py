"""Which statistics of the data go with a quantity: a linear fit, and what each one adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attnscope.probes.sen import rank_correlation

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Fit:
    """A least-squares fit on standardised predictors.

    Args:
        names: the predictors.
        coefficients: change of the target, in its standard deviations, per standard deviation of
            a predictor.
        alone: Spearman's correlation of each predictor with the target.
        adds: how much of the explained share goes when a predictor is left out.
        explained: R² on words that the fit has not seen, by five-fold cross-validation.
        count: number of rows.
    """

    names: tuple[str, ...]
    coefficients: np.ndarray
    alone: np.ndarray
    adds: np.ndarray
    explained: float
    count: int


def fit(target: np.ndarray, predictors: Mapping[str, np.ndarray], seed: int = 0) -> Fit:
    """Fit a target by predictors; rows in which anything is not a number are left out.

    Args:
        target: shape ``(row,)``.
        predictors: an array of the same shape under each name.
        seed: draws the folds.
    """
    names = tuple(predictors)
    table = np.stack([np.asarray(predictors[name], dtype=float) for name in names], axis=1)
    known = np.isfinite(target) & np.isfinite(table).all(axis=1)
    y, x = np.asarray(target, dtype=float)[known], table[known]
    folds = np.random.default_rng(seed).permutation(len(y)) % FOLDS
    full = explained_share(y, x, folds)
    without = [explained_share(y, np.delete(x, i, axis=1), folds) for i in range(len(names))]
    return Fit(
        names,
        _solve(_standard(x), _standard(y[:, None])[:, 0])[1:],
        np.array([float(rank_correlation(x[:, i], y)) for i in range(len(names))]),
        full - np.array(without),
        full,
        len(y),
    )


def explained_share(y: np.ndarray, x: np.ndarray, folds: np.ndarray) -> float:
    """R² = 1 - Σ(y - ŷ)² / Σ(y - ȳ)², with ŷ and ȳ from the other folds; it can be negative."""
    error = spread = 0.0
    for fold in np.unique(folds):
        held = folds == fold
        weights = _solve(x[~held], y[~held])
        error += float(((y[held] - weights[0] - x[held] @ weights[1:]) ** 2).sum())
        spread += float(((y[held] - y[~held].mean()) ** 2).sum())
    return 1 - error / spread if spread else float("nan")


def _solve(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]


def _standard(x: np.ndarray) -> np.ndarray:
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread == 0, 1.0, spread)
