"""Readings of ``snell2021.initial_derivative``: cases, derivatives at time 0, curves of θ."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import softmax

from attnscope.trajectory import select
from attnscope.theory import snell2021

PERMUTATIONS, MIXTURE = "permutations", "mixture"
"""Cases whose count table says nothing about positions."""
SHUFFLE = 0x5EED
"""Seed of the shuffled count table."""


def width_case(width: int) -> str:
    """Return the name of the case at a width."""
    return f"width {width:,}"


def start(tree: xr.DataTree, name: str, case: str) -> np.ndarray:
    """Return what was read at time 0, shape ``(seed, input word, output word)``."""
    return select(tree, name, case).isel(start=0).to_numpy()


def limit(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return 2(C - mean_o C), seed by seed."""
    return select(tree, "logits_limit", case, "theory").to_numpy()


def slopes(tree: xr.DataTree, name: str, case: str, factor: float, shuffled: bool) -> np.ndarray:
    """Return the slope of a measured derivative against ``factor`` times 2(C - mean_o C)."""
    found = []
    for seed, (values, table) in enumerate(
        zip(start(tree, name, case), limit(tree, case), strict=True)
    ):
        if shuffled:
            rng = np.random.default_rng([SHUFFLE, seed])
            table = rng.permutation(table.ravel()).reshape(table.shape)
        found.append(snell2021.slope(values, factor * table))
    return np.array(found)


def error(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return ‖measured - limit‖_F of the logits' derivative, seed by seed."""
    gap = start(tree, "logits_velocity", case) - limit(tree, case)
    return np.sqrt((gap**2).sum(axis=(1, 2)))


def theta(tree: xr.DataTree, case: str) -> np.ndarray:
    """Return θ over time, shape ``(seed, step, input word, output word)``."""
    return np.asarray(softmax(select(tree, "logits", case).to_numpy(), axis=-1))


def predicted_theta(tree: xr.DataTree, case: str, kind: str) -> np.ndarray:
    """Return θ over time as ``"early"``, ``"limit"`` or ``"exact"`` predicts it."""
    return select(tree, f"theta_{kind}", case, "theory").to_numpy()


def apart(tree: xr.DataTree, case: str, kind: str) -> np.ndarray:
    """Return the largest |θ - predicted θ| at any time for any two words, seed by seed."""
    gap = np.abs(theta(tree, case) - predicted_theta(tree, case, kind))
    return np.asarray(gap.max(axis=(1, 2, 3)))
