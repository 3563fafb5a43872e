"""The constants of the tail, against a flow whose solution is known."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.engines import Flow
from attnscope.models.token_selector import TokenSelector, selector_loss
from attnscope.tasks.token_choice import TokenChoice
from attnscope.theory import tarzanagh2023


@pytest.mark.parametrize("loss", ["logistic", "linear"])
def test_two_tokens_have_a_closed_tail(loss: tarzanagh2023.Loss) -> None:
    # One input, keys 1 and 0: θ' = |ℓ'| Δγ s(1 - s) with s = 1/(1 + exp(θ)), so s t → 1/(|ℓ'| Δγ).
    features, scores = np.array([[[1.0], [0.0]]]), np.array([[1.0, 0.2]])
    svm = tarzanagh2023.attention_svm(features, np.array([0]))
    slope = tarzanagh2023.slope_of(loss, np.array([1.0]))
    constants = tarzanagh2023.tail_constants(svm, scores, np.array([0]), slope)
    assert constants[0, 1] == pytest.approx(1 / (slope[0] * 0.8))
    assert np.isnan(constants[0, 0])
    model = TokenSelector(features, scores, np.zeros(1))
    Flow(rtol=1e-6, atol=1e-6).run(model, lambda m: selector_loss(m, loss), time=1e20, record=[])
    assert model.attention()[0, 1].item() * 1e20 == pytest.approx(constants[0, 1], rel=1e-3)


def test_the_dual_divides_the_tail_among_support_tokens() -> None:
    data = TokenChoice(3, 4, 6).sample(2)
    model = TokenSelector(data.features, data.scores, np.zeros(36))
    Flow(rtol=1e-5, atol=1e-5).run(model, selector_loss, time=1e30, record=[])
    weights = model.theta.detach().numpy()
    chosen = tarzanagh2023.chosen_tokens(data.features, weights)
    svm = tarzanagh2023.attention_svm(data.features, chosen)
    slope = tarzanagh2023.slope_of("logistic", data.scores[np.arange(3), chosen])
    constants = tarzanagh2023.tail_constants(svm, data.scores, chosen, slope)
    ratio = (model.attention().detach().numpy() * 1e30 / constants)[np.isfinite(constants)]
    assert np.median(ratio) == pytest.approx(1, abs=0.05)
    off = ~svm.support & (np.arange(4) != chosen[:, None])
    assert (model.attention().detach().numpy()[off] * 1e30 < 0.1).all()


def test_a_better_token_on_the_support_has_no_constant() -> None:
    features, scores = np.array([[[1.0], [0.0]]]), np.array([[0.2, 1.0]])
    svm = tarzanagh2023.attention_svm(features, np.array([0]))
    assert not tarzanagh2023.is_locally_optimal(scores, np.array([0]), svm)
    assert np.isnan(tarzanagh2023.tail_constants(svm, scores, np.array([0]), np.ones(1))).all()


def test_the_swapped_token_is_the_closest_one() -> None:
    scores = np.array([[1.0, 0.5, 0.1], [1.0, 0.9, 0.2]])
    assert tarzanagh2023.swapped(scores, np.array([0, 0])).tolist() == [0, 1]
