"""Predictions of the agreement study: what they are called, and which cells they are of."""

from __future__ import annotations

import numpy as np
import pytest
from _agreement_tree import make

from attnscope.claims import examine
from attnscope.probes.lexicon.cells import Cells
from attnscope.studies.snell2021.agreement.claims import claims_of
from attnscope.studies.snell2021.agreement.evidence import Evidence
from attnscope.studies.snell2021.agreement.predictions import PERMUTATIONS, WORDS, predictions
from attnscope.studies.snell2021.agreement.study import Agreement
from attnscope.theory.snell2021.before_training import COUNTED, COUNTS, AskedCells
from attnscope.trajectory import Readings


@pytest.mark.parametrize("kind", ["labelled", "parallel"])
def test_cells_are_asked_about_with_the_target_of_their_row(kind: str) -> None:
    made = make(kind, sentences=20, salient=4)
    data = made.tree["data"].to_dataset()
    alpha = Evidence(Readings(made.tree)).alpha
    found = predictions(data, made.source, made.target, alpha)
    assert set(found) == {
        *(f"{name}_dev" for name in WORDS),
        *(f"{name}_permuted" for name in COUNTED),
    }
    words = len(data["word"])
    asked = AskedCells(
        Cells(data["length_dev"]),
        data["source_dev"].to_numpy(),
        data["target_dev"].to_numpy(),
        words,
        {"labelled": 2, "parallel": words}[kind],
    )
    for name, values in asked.predicted(made.source, made.target).items():
        np.testing.assert_array_equal(found[f"{name}_dev"], values)
        # In single precision weights near 1 become equal, and ties decide who is largest.
        assert found[f"{name}_dev"].dtype == np.float64
    for name, values in asked.permuted(made.source, made.target, alpha, PERMUTATIONS).items():
        np.testing.assert_array_equal(found[f"{name}_permuted"], values)


def test_all_but_counts_are_weights_of_rows() -> None:
    tree = make("parallel").tree
    cells = Cells(tree["data/length_dev"])
    for name in set(WORDS) - {COUNTS}:
        weights = cells.padded(tree[f"theory/{name}_dev"])
        np.testing.assert_allclose(np.nansum(weights, axis=1), 1, rtol=1e-5)


def test_a_proxy_that_has_hardly_trained_says_nothing() -> None:
    made = make("labelled", sentences=20, salient=4)
    assert not Evidence(Readings(made.tree)).proxy_untrained
    run = list(made.tree["observables/case"].to_numpy()).index("proxy")
    losses = made.tree["observables/loss_dev"]
    losses[run] = 0.693 - 1e-3 * np.arange(losses.sizes["step"])
    claim = next(claim for claim in claims_of(Agreement()) if claim.key == "uf-px")
    found = examine(claim, made.tree)
    assert found.verdict == "undecided"
    assert "--proxy-epochs" in found.reason
