"""Prediction before training: against sums by hand, and against word pairs that are known."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from _agreement_tree import make

from attnscope.probes.agreement import mean_agreement, random_baseline, shuffled_baseline
from attnscope.studies.snell2021._agreement_cells import Cells
from attnscope.studies.snell2021._agreement_predictions import (
    COUNTS,
    EM,
    IBM,
    PERMUTATIONS,
    WORDS,
    from_pairs,
    permuted,
    tied_baseline,
)

# Three sentences with their classes; word 3 is good, word 4 bad, word 5 neither.
SOURCE = [[3, 5], [4, 5, 5], [3, 3, 4]]
CLASSES = [[1], [0], [1]]


def truth() -> xr.Dataset:
    return xr.Dataset(
        {
            "length_dev": ("row_dev", [2, 3]),
            "source_dev": ("cell_dev", [3, 5, 4, 5, 2]),
            "target_dev": ("row_dev", [1, 0]),
            "word": ("id", ["pad", "bos", "eos", "good", "bad", "so"]),
        },
        attrs={"kind": "labelled"},
    )


def test_counts_are_sums_by_hand() -> None:
    found = from_pairs(truth(), SOURCE, CLASSES)
    # C by word: good (0, 1/2 + 2/3), bad (1/3, 1/3), so (2/3, 1/2).
    counts = [7 / 6 - 7 / 12, 1 / 2 - 7 / 12, 0, 2 / 3 - 7 / 12, 0]
    np.testing.assert_allclose(found["counts_dev"], counts, rtol=1e-6, atol=1e-7)
    first, second = 1.0, 3 / 7
    third, fourth = 1 / 2, 4 / 7
    alpha = [
        first / (first + second),
        second / (first + second),
        third / (third + fourth),
        fourth / (third + fourth),
        0,  # never seen in training
    ]
    np.testing.assert_allclose(found["ibm_dev"], alpha, rtol=1e-6)


def test_all_but_counts_are_weights_of_rows() -> None:
    made = make("parallel")
    data = made.tree["data"].to_dataset()
    found = from_pairs(data, made.source, made.target)
    cells = Cells(data["length_dev"])
    assert set(found) == {f"{name}_dev" for name in WORDS}
    for name in set(WORDS) - {COUNTS}:
        weights = cells.padded(found[f"{name}_dev"])
        np.testing.assert_allclose(np.nansum(weights, axis=1), 1, rtol=1e-5)


def test_pairs_say_which_word_becomes_which() -> None:
    """In the made-up translation every word becomes itself, which EM finds out."""
    made = make("parallel", sentences=150)
    data = made.tree["data"].to_dataset()
    found = from_pairs(data, made.source, made.target)
    cells = Cells(data["length_dev"])
    copies = data["source_dev"] == np.repeat(data["target_dev"].to_numpy(), cells.length)
    goal = cells.padded(copies)
    agreed = {}
    for name in (IBM, EM):
        weights = cells.padded(found[f"{name}_dev"])
        agreed[name] = 100 * mean_agreement(goal, weights, cells.mask).value
    chance = permuted(data, made.source, made.target, goal)["ibm_permuted"].to_numpy()
    assert len(chance) == PERMUTATIONS == len(set(chance))
    assert agreed[EM] > 95
    assert agreed[IBM] > chance.max() + 20


def test_ties_raise_the_baseline() -> None:
    rng = np.random.default_rng(0)
    mask = Cells(rng.integers(1, 40, size=400)).mask
    distinct = rng.random(mask.shape)
    lengths = mask.sum(axis=1)
    assert tied_baseline(distinct, mask) == pytest.approx(random_baseline(lengths), rel=1e-12)
    assert tied_baseline(np.zeros(mask.shape), mask) == 1
    tied = np.round(distinct, 1)
    exact = tied_baseline(tied, mask)
    estimates = [shuffled_baseline(distinct, tied, mask, seed=seed).value for seed in range(40)]
    assert exact > random_baseline(lengths) + 0.02
    assert np.mean(estimates) == pytest.approx(exact, abs=4 * np.std(estimates) / 40**0.5)
