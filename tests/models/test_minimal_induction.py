"""The minimal model: rules that it can hold exactly, against loops."""

from __future__ import annotations

import pytest
import torch

from attnscope.errors import AttnscopeError
from attnscope.models.minimal_induction import MinimalInduction
from attnscope.tasks.markov_chains import MarkovChains

CHAINS = MarkovChains(3, 12).sample(5, 0)


def test_a_constant_matrix_counts_states_whatever_v_is() -> None:
    model = MinimalInduction(3, 12, unigram=0.3, rate=4.0)
    torch.nn.init.normal_(model.slow_v)
    counts = torch.nn.functional.one_hot(CHAINS.tokens, 3).double().cumsum(1)
    torch.testing.assert_close(model(CHAINS.tokens), 0.3 * counts)


def test_looking_back_with_the_identity_counts_pairs() -> None:
    model = MinimalInduction(3, 12, rate=1.0)
    with torch.no_grad():
        model.W.copy_(torch.eye(3))
        model.slow_v[1] = 60.0
    found = model(CHAINS.tokens)
    for row, tokens in enumerate(CHAINS.tokens.tolist()):
        for t in range(12):
            expected = torch.zeros(3, dtype=torch.float64)
            for i in range(1, t + 1):
                expected[tokens[i]] += tokens[i - 1] == tokens[t]
            # The first position has none before it and looks at itself.
            expected[tokens[0]] += tokens[0] == tokens[t]
            torch.testing.assert_close(found[row, t], expected)


def test_layer_1_sees_no_later_state() -> None:
    weights = MinimalInduction(2, 5).first_layer()
    assert (weights.triu(1) == 0).all()
    assert weights[0, 0] == 1


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match="rate = 0"):
        MinimalInduction(2, 5, rate=0)
