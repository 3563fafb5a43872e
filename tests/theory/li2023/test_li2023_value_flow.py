"""The solved flow of W^V, against theory, gradients and sampled documents."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.engines import Flow
from attnscope.models.topic_objective import PopulationObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.probes.topics.topic_blocks import DIAGONAL, SAME, block_means
from attnscope.tasks import TopicDocuments, TopicPopulation
from attnscope.theory import li2023
from attnscope.theory.li2023 import ValueSolution, diagonal_excess, shortness

POPULATION = TopicPopulation(topics=4, words=3, tau=2)
SIZE = POPULATION.vocabulary


@pytest.mark.parametrize("penalty", [0.0, 1e-6, 1e-2])
def test_it_ends_at_the_ridge_solution(penalty: float) -> None:
    exact = li2023.ridge_value_blocks(POPULATION, penalty).matrix(POPULATION)
    assert ValueSolution(POPULATION, penalty).end == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("penalty", [0.0, 1e-2])
def test_the_flow_follows_it(penalty: float) -> None:
    start = np.random.default_rng(0).normal(size=(SIZE, SIZE))
    model = TopicTransformer(SIZE, attention="uniform").double()
    solution = ValueSolution(POPULATION, penalty)
    with torch.no_grad():
        model.get_parameter("W_V").copy_(torch.from_numpy(start))
    loss = PopulationObjective(POPULATION, penalty=penalty)
    Flow(rtol=1e-9, atol=1e-9).run(model, loss, time=30.0, record=[])
    moved = model.get_parameter("W_V").detach().numpy()
    assert moved == pytest.approx(solution.at(30.0, start), abs=1e-7)
    assert np.abs(moved - start).max() > 0.1
    assert solution.at(0.0, start) == pytest.approx(start, abs=1e-12)


def test_documents_of_finite_length_have_the_moments_it_assumes() -> None:
    task = TopicDocuments(topics=4, words=3, tau=2, length=(20, 40), p_m=0.4, p_c=0.3)
    population = TopicPopulation(4, 3, 2, p_m=0.4, p_c=0.3)
    contexts = task.sample(40_000, 0).contexts(torch.float64, by_query=False)
    shares = torch.softmax(contexts.offsets, dim=1).numpy()
    target = contexts.target.numpy()
    second = (shares * target.sum(axis=1, keepdims=True)).T @ shares
    fitted = target.T @ shares @ np.linalg.inv(second + 1e-3 * np.eye(SIZE))
    found = block_means(fitted, population.topic_of)
    solution = ValueSolution(population, 1e-3, shortness(task))
    known = block_means(solution.end, population.topic_of)
    assert found == pytest.approx(known, abs=4e-3)
    long = block_means(ValueSolution(population, 1e-3).end, population.topic_of)
    assert np.abs(found - long).max() > 0.1


@pytest.mark.parametrize("penalty", [0.0, 1e-3])
def test_the_excess_of_the_diagonal_is_closed(penalty: float) -> None:
    short = 1 / 50
    means = block_means(ValueSolution(POPULATION, penalty, short).end, POPULATION.topic_of)
    excess = diagonal_excess(POPULATION, penalty, short)
    assert means[DIAGONAL] - means[SAME] == pytest.approx(excess, rel=1e-9)


def test_without_a_penalty_the_excess_does_not_know_the_length() -> None:
    assert diagonal_excess(POPULATION, 0.0, 1e-6) == diagonal_excess(POPULATION, 0.0, 1e-2)
    assert diagonal_excess(POPULATION, 1e-3, 1e-9) < 1e-6


def test_shortness_is_the_mean_of_one_over_length() -> None:
    assert shortness(TopicDocuments(length=(2, 4))) == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert shortness(TopicDocuments(length=50)) == pytest.approx(1 / 50)
