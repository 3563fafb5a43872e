"""Scores of words are differences of logits, whatever softmax forgets."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.word_scores import word_scores


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits)
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def test_a_score_is_the_mean_logit_over_that_of_other_words() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 4, (3, 6))
    logits = rng.normal(size=(3, 2, 6, 6))
    visible = np.broadcast_to(np.tri(6, dtype=bool), (3, 6, 6))
    asking = rng.random((3, 6)) > 0.2
    weights = _softmax(np.where(visible[:, None], logits, -np.inf))
    found = word_scores(weights, ids, np.array([2, 0, 9]), visible, asking)
    for head in range(2):
        for number, word in enumerate((2, 0)):
            parts = []
            for row, query in np.ndindex(3, 6):
                keys = [k for k in range(query + 1) if asking[row, query]]
                here = [k for k in keys if ids[row, k] == word]
                other = [logits[row, head, query, k] for k in keys if ids[row, k] != word]
                if other:
                    parts += [logits[row, head, query, k] - np.mean(other) for k in here]
            np.testing.assert_allclose(found[head, number], np.mean(parts), rtol=1e-12)
    assert np.isnan(found[:, 2]).all()


def test_scores_of_lu_2021_come_back() -> None:
    # One query; every word has one score, and sentences hold each word once.
    scores = np.array([0.3, -1.0, 2.0, 0.0])
    ids = np.array([[0, 1, 2, 3], [3, 2, 1, 0]])
    weights = _softmax(scores[ids])[:, None, None]
    found = word_scores(weights, ids, np.arange(4), np.ones((2, 1, 4), dtype=bool))
    others = (scores.sum() - scores) / 3
    np.testing.assert_allclose(found[0], scores - others, rtol=1e-12)


def test_ids_have_to_fit() -> None:
    with pytest.raises(AttnscopeError, match=r"expected \(2, 4\)"):
        word_scores(
            np.ones((2, 1, 3, 4)) / 4,
            np.zeros((2, 3), dtype=int),
            np.array([0]),
            np.ones((2, 3, 4), dtype=bool),
        )
