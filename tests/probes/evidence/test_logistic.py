from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from attnscope.probes.evidence.bags import labelled_bags
from attnscope.probes.evidence.logistic import fit_logistic, rarity, tf_idf


def test_it_agrees_with_scikit_learn() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    dice = np.random.default_rng(0)
    x = sparse.csr_array(dice.random((80, 5)) * (dice.random((80, 5)) < 0.5))
    labels = dice.integers(0, 3, 80)
    ours = fit_logistic(x, labels, 3, penalty=2.0)
    theirs = linear.LogisticRegression(C=0.5, tol=1e-10, max_iter=2000).fit(x.toarray(), labels)
    centred = theirs.coef_ - theirs.coef_.mean(axis=0)
    assert pytest.approx(centred, abs=2e-3) == ours.weights.T
    assert (ours.guess(x) == theirs.predict(x.toarray())).all()


def test_rows_of_tf_idf_have_length_one_and_an_empty_one_stays_empty() -> None:
    rows = [np.array([0, 0, 1]), np.array([], dtype=int)]
    data = labelled_bags(rows, np.array([0, 1]), 2, 2)
    table = tf_idf(data.counts, rarity(data)).toarray()
    assert np.linalg.norm(table, axis=1) == pytest.approx([1.0, 0.0])
    assert table[0, 0] == pytest.approx(2 * table[0, 1])
