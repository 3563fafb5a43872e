"""Markov chains with matrices of their own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.markov_chains import MarkovChains, stationary


def test_states_follow_the_matrices() -> None:
    chains = MarkovChains(3, 400).sample(300, 0)
    first, then = chains.tokens[:, :-1], chains.tokens[:, 1:]
    expected = chains.next_laws()[:, :-1]
    seen = torch.nn.functional.one_hot(then, 3).double()
    for state in range(3):
        at = first == state
        assert (seen[at].mean(dim=0) - expected[at].mean(dim=0)).abs().max() < 6e-3


@pytest.mark.parametrize("states", [2, 3, 5])
def test_doubly_stochastic_columns_sum_to_one(states: int) -> None:
    matrices = MarkovChains(states, 5, "doubly stochastic").sample(50, 1).matrices
    assert (matrices >= 0).all()
    for dim in (1, 2):
        torch.testing.assert_close(matrices.sum(dim), torch.ones(50, states, dtype=torch.float64))


def test_unigram_chains_have_equal_rows_and_stationary_starts_are_stationary() -> None:
    chains = MarkovChains(2, 5, unigram_share=1.0).sample(20, 0)
    assert (chains.matrices[:, 0] == chains.matrices[:, 1]).all()
    matrices = np.random.default_rng(0).dirichlet(np.ones(4), size=(30, 4))
    share = stationary(matrices)
    np.testing.assert_allclose(np.einsum("ni,nij->nj", share, matrices), share, atol=1e-13)
    stay = MarkovChains(2, 3, start="stationary").sample(20_000, 0)
    expected = stationary(stay.matrices.numpy())[:, 1].mean()
    assert abs(float(stay.tokens[:, 0].double().mean()) - expected) < 0.01


def test_a_stream_is_a_function_of_the_rows() -> None:
    stream = MarkovChains(2, 6).stream(3)
    rows = torch.arange(10, 14)
    assert torch.equal(stream.batch(rows).tokens, stream.batch(rows).tokens)
    assert not torch.equal(stream.batch(rows).tokens, stream.batch(rows + 4).tokens)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"states": 1}, "states = 1: expected 2 to 64; with one state"),
        ({"length": 2}, "length = 2: expected 3 or more"),
        ({"unigram_share": 2.0}, "unigram_share = 2.0"),
        ({"rows": "random"}, "rows = 'random'"),
    ],
)
def test_what_is_refused_is_quoted(given: dict[str, object], said: str) -> None:
    with pytest.raises(AttnscopeError, match=said):
        MarkovChains(**given)  # type: ignore[arg-type]
    with pytest.raises(AttnscopeError, match="count = 0"):
        MarkovChains().sample(0, 0)
