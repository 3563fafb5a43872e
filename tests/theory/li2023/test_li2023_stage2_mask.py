"""The loss of Stage 2 with [MASK] as a key: the model's own, and its minima."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.models import TopicTransformer
from attnscope.models.topic_objective import PopulationObjective
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.theory import li2023
from attnscope.theory.li2023 import TopicSetting


@pytest.mark.parametrize("mask_ratio", [0.5, 1.0, 2.0])
def test_the_loss_with_mask_as_a_key_is_that_of_the_model(mask_ratio: float) -> None:
    setting, gamma = TopicSetting(5, 3, 2), 4.0
    population = TopicPopulation(**vars(setting))
    topic = population.topic_of
    scores = np.where(topic[:, None] == topic, np.log(gamma), 0.0)
    scores[0] = np.log(mask_ratio)
    model = TopicTransformer(len(topic), attention="frozen").double()
    assert model.W_V is not None
    assert model.W_K is not None
    assert model.W_Q is not None
    with torch.no_grad():
        model.W_V.copy_(torch.from_numpy(li2023.value_blocks(setting).matrix(setting)))
        model.W_K.copy_(torch.eye(len(topic)))
        model.W_Q.copy_(torch.from_numpy(scores) * model.attention_dim**0.5)
    loss = PopulationObjective(population, "squared", masked_queries=False)(model).item()
    assert li2023.masked_loss(setting, gamma, mask_ratio) == pytest.approx(loss, rel=1e-12)


def test_at_equal_attention_the_loss_is_the_known_one() -> None:
    setting = TopicSetting(10, 10, 3)
    known = float(li2023.attention_loss(setting, 5.0, 5.0, mask="attended"))
    assert li2023.masked_loss(setting, 5.0, 1.0) == pytest.approx(known, rel=1e-14)
    attended = li2023.best_gamma(setting, "attended")
    assert li2023.best_gamma_at(setting, 1.0) == pytest.approx(attended, rel=1e-6)


def test_both_ratios_are_best_together() -> None:
    setting = TopicSetting(10, 10, 3)
    gamma, mask = li2023.best_ratios(setting)
    least = li2023.masked_loss(setting, gamma, mask)
    for factor in (0.99, 1.01):
        assert li2023.masked_loss(setting, gamma * factor, mask) > least
        assert li2023.masked_loss(setting, gamma, mask * factor) > least
