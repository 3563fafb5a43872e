"""Positions that are alike, against pairs written out."""

from __future__ import annotations

import itertools

import numpy as np

from attnscope.probes.rank_collapse import residual, token_similarity


def test_against_pairs_and_norms_with_padding() -> None:
    rng = np.random.default_rng(1)
    states = rng.normal(size=(3, 5, 4)) + 1
    real = np.ones((3, 5), dtype=bool)
    real[1, 2:], real[2, 1:] = False, False  # row 2 has one position, which is like no other
    apart, cosines = [], []
    for row in (0, 1):
        x = states[row][real[row]]
        apart.append(np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x))
        cosines.append(
            np.mean(
                [
                    a @ b / np.linalg.norm(a) / np.linalg.norm(b)
                    for a, b in itertools.combinations(x, 2)
                ]
            )
        )
    np.testing.assert_allclose(residual(states, real), np.mean(apart), rtol=1e-13)
    np.testing.assert_allclose(token_similarity(states, real), np.mean(cosines), rtol=1e-12)


def test_nothing_to_compare_is_nan() -> None:
    assert np.isnan(residual(np.ones((2, 1, 3))))
    assert np.isnan(token_similarity(np.ones((2, 1, 3))))
