"""The three strategies against counting by hand, and that Bayes' rule is the best."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.tasks.markov_chains import MarkovChains
from attnscope.theory.edelman2024 import divergence, strategies


def test_against_counting_by_hand() -> None:
    tokens = MarkovChains(3, 10).sample(4, 0).tokens
    uniform, unigram, bigram = strategies(tokens, 3)
    assert (uniform == 1 / 3).all()
    for row, states in enumerate(tokens.tolist()):
        for t in range(10):
            past = states[: t + 1]
            after = [b for a, b in pairwise(past) if a == past[-1]]
            for j in range(3):
                assert unigram[row, t, j] == (past.count(j) + 1) / (t + 1 + 3)
                assert bigram[row, t, j] == (after.count(j) + 1) / (len(after) + 3)


def test_the_bigram_rule_costs_least() -> None:
    chains = MarkovChains(2, 30).sample(2000, 1)
    laws = chains.next_laws()[:, -1]
    found = [divergence(laws, s[:, -1].log()).mean() for s in strategies(chains.tokens, 2)]
    assert found[2] < found[1] < found[0]
    assert float(divergence(laws, laws.log()).abs().max()) < 1e-12


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="states = 1"):
        strategies(torch.zeros(1, 4, dtype=torch.long), 1)
    with pytest.raises(AttnscopeError, match="states from 0 to 3: expected 0 to 1"):
        strategies(torch.tensor([[0, 3]]), 2)
