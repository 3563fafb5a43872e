"""What the training pairs alone say about attention, for the group ``theory``."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from attnscope.probes.lexicon.cells import Cells
from attnscope.theory.snell2021.before_training import (
    COUNTS,
    EM,
    IBM,
    ITERATIONS,
    AskedCells,
    Side,
)

PERMUTATIONS = 11
"""Ways to put pairs together at random: ten to compare with, and one that is a control."""
WORDS = {
    COUNTS: "count table: start of the log odds, C_io - mean over o' of C_io' (eq 15)",
    IBM: "α of IBM Model 1 after one iteration (eq 17 to 19)",
    EM: f"α of IBM Model 1 after {ITERATIONS} iterations of EM",
}


def predictions(
    truth: xr.Dataset, source: Side, target: Side, alpha: NDArray[np.float64]
) -> xr.Dataset:
    """Predict attention for every validation cell.

    Args:
        truth: the group ``data``.
        source: word ids of all training sentences.
        target: of what belongs to them: translations, or one class each.
        alpha: attention of run A, shape ``(row, position)``.

    Returns:
        A variable ``NAME_dev`` for each name of :data:`WORDS`, over cells; and ``NAME_permuted``
        for those that are read off the count table, A(α, v) with v from random pairs.
    """
    vocabulary = truth.sizes["id"]
    asked = AskedCells(
        Cells(truth["length_dev"]),
        truth["source_dev"].to_numpy(),
        truth["target_dev"].to_numpy(),
        vocabulary,
        2 if truth.attrs["kind"] == "labelled" else vocabulary,
    )
    chance = {"unit": "%", "meaning": "A(α, v) for training pairs put together at random"}
    # In double precision: in single precision thousands of weights near 1 are equal, and ties that
    # are not there decide where the largest one is.
    found = {
        f"{name}_dev": ("cell_dev", v, {"unit": "", "meaning": WORDS[name]})
        for name, v in asked.predicted(source, target).items()
    }
    random = {
        f"{name}_permuted": ("permutation", values, chance)
        for name, values in asked.permuted(source, target, alpha, PERMUTATIONS).items()
    }
    return xr.Dataset({**found, **random})
