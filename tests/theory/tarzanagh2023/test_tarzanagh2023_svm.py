"""Att-SVM: the values that the papers print, its conditions, and what is not feasible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnscope.tasks.token_choice import TokenChoice, one_input
from attnscope.theory import tarzanagh2023


@pytest.mark.parametrize(("token", "value"), [(0, 0.49505), (1, 0.50000)])
def test_one_input_in_the_plane(token: int, value: float) -> None:
    found = tarzanagh2023.attention_svm(one_input((1.0, 0.9, 0.9)).features, np.array([token]))
    assert found.growth**2 / 2 == pytest.approx(value, abs=5e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(2, 5), st.integers(4, 8))
def test_the_conditions_of_karush_kuhn_and_tucker(
    seed: int, inputs: int, tokens: int, width: int
) -> None:
    data = TokenChoice(inputs, tokens, width).sample(seed)
    chosen = tarzanagh2023.optimal_tokens(data.scores)
    found = tarzanagh2023.attention_svm(data.features, chosen)
    assert found.feasible
    apart = data.features[np.arange(inputs), chosen][:, None] - data.features
    assert (found.margins > 1 - 1e-9).all()
    assert (found.dual >= 0).all()
    assert (
        np.abs(found.dual * (np.where(np.isinf(found.margins), 1, found.margins) - 1)).max() < 1e-7
    )
    np.testing.assert_allclose(
        np.einsum("it,ite->e", found.dual, apart), found.direction, atol=1e-8 * found.growth
    )
    assert found.dual.sum() == pytest.approx(found.growth**2)


def test_tokens_that_no_weights_keep_apart_are_not_feasible() -> None:
    # The chosen token lies between the two others.
    keys = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])
    found = tarzanagh2023.attention_svm(keys, np.array([0]))
    assert not found.feasible
    scores = np.array([[1.0, 0.0, 0.0]])
    assert not tarzanagh2023.is_locally_optimal(scores, np.array([0]), found)


def test_an_input_of_one_token_asks_for_nothing() -> None:
    found = tarzanagh2023.attention_svm(np.ones((2, 1, 3)), np.array([0, 0]))
    assert (found.feasible, found.growth, found.support.any()) == (True, 0.0, False)


def test_the_nuclear_norm_is_least() -> None:
    data = TokenChoice(4, 4, 5).sample(0)
    assert data.tokens is not None
    assert data.queries is not None
    chosen = tarzanagh2023.optimal_tokens(data.scores)
    low = tarzanagh2023.nuclear_svm(data.tokens, data.queries, chosen)
    apart = data.features[np.arange(4), chosen][:, None] - data.features
    rows = apart[np.arange(4) != chosen[:, None]]
    assert (rows @ low.ravel()).min() > 1 - 1e-5

    def size(matrix: np.ndarray) -> float:
        return float(np.linalg.svd(matrix.reshape(5, 5), compute_uv=False).sum())

    source = np.random.default_rng(1)
    for _ in range(200):
        other = low.ravel() + 0.1 * source.normal(size=25)
        # Any feasible point: one that is scaled until its least margin is 1.
        least = (rows @ other).min()
        if least > 0:
            assert size(other / min(1.0, least)) >= size(low) * (1 - 1e-5)
    frobenius = tarzanagh2023.attention_svm(data.features, chosen)
    assert size(low) < size(frobenius.direction)
    assert np.linalg.norm(low) > frobenius.growth


def test_no_nuclear_machine_where_there_is_none() -> None:
    tokens = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])
    assert np.isnan(tarzanagh2023.nuclear_svm(tokens, np.ones((1, 2)), np.array([0]))).all()
