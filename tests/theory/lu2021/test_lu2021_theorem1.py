"""Theorem 1 where it must hold exactly, where theory bounds its error, and where it must fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.models import BagAttention
from attnscope.tasks import TopicWords, TopicWordsData
from attnscope.theory.lu2021 import (
    PsiAverages,
    identity_residual,
    norm_from_score,
    predicted_norm,
    psi_averages,
)

TIME = 25.0
SOLVER = 1e-6  # 1e-8 a step and coordinate, some dozen steps, distances of a few units


@st.composite
def tasks(draw: st.DrawFn) -> TopicWordsData:
    task = TopicWords(
        topics=draw(st.integers(2, 4)),
        words_per_topic=draw(st.integers(1, 2)),
        m=draw(st.integers(3, 8)),
        dictionary=draw(st.integers(30, 60)),
        train=draw(st.integers(30, 80)),
        test=1,
    )
    seed = draw(st.integers(0, 1000))
    while not (data := task.sample(seed)).train.occurrences[: task.topic_words].all():
        seed += 1
    return data


def build(
    reader: Callable, data: TopicWordsData, kind: str, dim: int, std: float, seed: int
) -> BagAttention:
    generator = torch.Generator().manual_seed(seed)
    top = reader(kind, dim, data.task.topics, generator)
    model = BagAttention(data.task.vocabulary, dim, top, std=std, generator=generator)
    return model.double()


def initial_averages(model: BagAttention, data: TopicWordsData) -> PsiAverages:
    words = np.arange(data.task.topic_words)
    return psi_averages(model.scores(), model.embeddings(), data.train, words)


@given(tasks(), st.sampled_from(["FC", "TC", "tanh"]), st.integers(4, 8), st.integers(0, 1000))
def test_identity_is_exact_when_all_surroundings_are_alike(
    reader: Callable,
    topic_rows_flow: Callable,
    data: TopicWordsData,
    kind: str,
    dim: int,
    seed: int,
) -> None:
    # All non-topic words share one score and one embedding, both far from zero, and topic words
    # start anywhere: then v̄(χ∖t) and Z(χ∖t) are the same in all sentences, and nothing in the
    # proof of Lemma 2 is approximate.
    topics = data.task.topic_words
    model = build(reader, data, kind, dim, 0.5, seed)
    with torch.no_grad():
        model.embedding[topics:] = model.embedding[topics]
        model.scores()[topics:] = -0.4
        model.scores()[:topics] = torch.linspace(-1, 1, topics)
    initial = initial_averages(model, data)
    _, scores, embeddings = topic_rows_flow(model, data.train, topics, TIME)
    residual = identity_residual(scores, embeddings, initial)
    assert np.abs(residual).max() < SOLVER
    distance = np.linalg.norm(embeddings - initial.context, axis=-1)
    predicted = predicted_norm(scores, scores[0], embeddings[0], initial)
    np.testing.assert_allclose(predicted, distance, atol=SOLVER / distance.min())
    # The words went somewhere, and the identity knows how many words surround them.
    assert np.abs(scores[-1] - scores[0]).max() > 0.05
    wrong = PsiAverages(initial.inverse_z * 1.5, initial.context, initial.ratio)
    assert np.abs(identity_residual(scores, embeddings, wrong)).max() > 100 * SOLVER


@given(tasks(), st.sampled_from([1e-4, 1e-2, 0.3]), st.integers(4, 8), st.integers(0, 1000))
def test_error_of_averaging_stays_below_its_bound(
    reader: Callable,
    topic_rows_flow: Callable,
    data: TopicWordsData,
    std: float,
    dim: int,
    seed: int,
) -> None:
    # With scores zero around t, d(residual)/dt = -Σ_χ (c_χ - ⟨c⟩)ᵀ g_χ with c_χ = v̄(χ∖t) and
    # g_χ = a h(v̄(χ))/|Ψ|. The first factor has mean zero, so g_χ may be replaced by g_χ - ⟨g⟩.
    # For orthonormal U the gradient h is ½-Lipschitz, and v̄(χ) = a v_t + (1-a) c_χ; with D the
    # largest ‖c_χ - ⟨c⟩‖, ‖h - ⟨h⟩‖ ≤ ½ (1-a) 2D. As a (1-a) ≤ ¼,
    #     |residual| ≤ (|Ψ_t|/|Ψ|) D² t / 4,
    # which is the L√dσ²/4 of appendix D.
    topics = data.task.topic_words
    model = build(reader, data, "FC", dim, std, seed)
    initial = initial_averages(model, data)
    times, scores, embeddings = topic_rows_flow(model, data.train, topics, TIME)
    around = model.embeddings().detach()[data.train.ids[:, 1:]].mean(dim=1).numpy()
    topic = data.train.ids[:, 0].numpy()
    spread = np.linalg.norm(around - initial.context[topic], axis=1)
    largest = np.array([spread[topic == t].max() for t in range(topics)])
    share = np.bincount(topic, minlength=topics) / len(topic)
    bound = share * largest**2 * times[:, None] / 4
    residual = identity_residual(scores, embeddings, initial)
    assert (np.abs(residual) <= bound + SOLVER).all()


@pytest.mark.parametrize("kind", ["FC", "TC", "tanh"])
def test_corollary_1_is_what_is_left_and_depends_on_m(
    reader: Callable, topic_rows_flow: Callable, kind: str
) -> None:
    task = TopicWords(topics=3, words_per_topic=1, m=6, dictionary=40, train=60, test=1)
    data = task.sample(0)
    model = build(reader, data, kind, 6, 1e-5, 0)
    initial = initial_averages(model, data)
    _, scores, embeddings = topic_rows_flow(model, data.train, 3, 200.0)
    norms, start = (np.linalg.norm(embeddings[i], axis=-1) for i in (-1, 0))
    # Eq (9) says ‖v - c‖² = ‖v₀ - c‖² + ‖v‖² of eq (10), with c = ⟨v̄(χ∖t)⟩; the triangle
    # inequality, twice, makes the difference of the two norms ‖v₀‖ + 2‖c‖ at most.
    slack = start + 2 * np.linalg.norm(initial.context, axis=1) + SOLVER / norms
    assert (np.abs(norm_from_score(scores[-1], task.m) - norms) <= slack).all()
    for wrong in (task.m - 1, task.m + 1):
        off = np.abs(norm_from_score(scores[-1], wrong) - norms)
        assert (off > 10 * slack).all()


def test_averages_of_the_run_take_the_place_of_the_initial_ones() -> None:
    rng = np.random.default_rng(0)
    scores, embeddings = rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 4))
    inverse_z, context = rng.uniform(0.1, 1, (3, 2)), rng.normal(size=(3, 2, 4))
    initial = PsiAverages(inverse_z[0], context[0], 1 + inverse_z[0])
    now = PsiAverages(inverse_z, context, 1 + inverse_z)
    residual = identity_residual(scores, embeddings, initial, now)
    for step in range(3):
        for word in range(2):
            left, right = (
                [
                    scores[i, word] + np.exp(scores[i, word]) * inverse_z[i, word],
                    np.sum((embeddings[i, word] - context[i, word]) ** 2) / 2,
                ]
                for i in (0, step)
            )
            expected = (right[0] - left[0]) - (right[1] - left[1])
            assert residual[step, word] == pytest.approx(expected, abs=1e-14)
    predicted = predicted_norm(scores, scores[0], embeddings[0], initial, now)
    distance = np.linalg.norm(embeddings - context, axis=-1)
    square = distance**2 + 2 * residual
    np.testing.assert_allclose(predicted, np.sqrt(np.maximum(square, 0)), atol=1e-12)
