"""Eqs (3) and (4) of Lu 2021, written out sentence by sentence, against autograd."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnscope.models import BagAttention, KeyQuery, ScoreTable, classifier
from attnscope.models.classifiers import Classifier, ClassifierKind, TwoLayer
from attnscope.models.pooling import cross_entropy
from attnscope.tasks import Bags, TopicWordsData

KINDS: tuple[ClassifierKind, ...] = ("FC", "FC-released", "TC", "TL")


def negative_gradient(reader: Classifier, context: Tensor, label: int) -> Tensor:
    """h(v̄; y) = -∂l/∂v̄ of the cross-entropy, by hand."""
    onehot = torch.eye(reader.rest(context @ reader.weight).numel())[label]
    if isinstance(reader, TwoLayer):
        hidden = context @ reader.weight + reader.bias
        logits = torch.relu(hidden) @ reader.readout + reader.readout_bias
        signal = (reader.readout @ (onehot - torch.softmax(logits, 0))) * (hidden > 0)
    else:
        signal = onehot - torch.softmax(reader.weight.T @ context, 0)
    return reader.weight @ signal


@torch.no_grad()
def written_updates(
    scores: Tensor, embeddings: Tensor, reader: Classifier, scale: float, bags: Bags
) -> tuple[Tensor, Tensor]:
    """Δs and Δv at η = 1, each word once per occurrence; the classifier reads v̄ / scale."""
    delta_s, delta_v = torch.zeros_like(scores), torch.zeros_like(embeddings)
    for row in range(len(bags)):
        words = bags.ids[row] if bags.mask is None else bags.ids[row][bags.mask[row]]
        factors = torch.exp(scores[words])
        z = factors.sum()
        context = sum(f * embeddings[w] for f, w in zip(factors, words, strict=True)) / z
        # With v = ‖q‖ν the loss depends on v̄ through v̄/‖q‖, hence the factor 1/‖q‖ in h.
        h = negative_gradient(reader, context / scale, int(bags.labels[row])) / scale
        for w, factor in zip(words, factors, strict=True):
            delta_v[w] += h * factor / z / len(bags)
            delta_s[w] += (embeddings[w] - context) @ h * factor / z / len(bags)
    return delta_s, delta_v


def ragged_bags() -> Bags:
    """Sentences of different lengths, one with a word in it twice."""
    ids = torch.tensor([[0, 3, 4, 3], [1, 4, 5, 0], [2, 5, 0, 0], [1, 3, 0, 0]])
    mask = torch.arange(4) < torch.tensor([[4], [3], [2], [2]])
    return Bags(ids, torch.tensor([0, 1, 2, 1]), 6, mask)


def moved(model: BagAttention, generator: torch.Generator) -> BagAttention:
    """Put the model at an arbitrary point, far from its start."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    return model


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", KINDS)
def test_eqs_3_and_4_are_the_negative_gradient(
    kind: ClassifierKind, tiny: TopicWordsData, generator: torch.Generator
) -> None:
    for bags in (tiny.train, ragged_bags()):
        reader = classifier(kind, 5, 3, generator=generator)
        model = moved(BagAttention(bags.vocabulary, 5, reader, generator=generator), generator)
        delta_s, delta_v = written_updates(model.scores(), model.embeddings(), reader, 1.0, bags)
        cross_entropy(model(bags), bags.labels).backward()
        assert isinstance(model.score_source, ScoreTable)
        score_grad, embedding_grad = model.score_source.score.grad, model.embedding.grad
        torch.testing.assert_close(score_grad, -delta_s, rtol=1e-10, atol=1e-14)
        torch.testing.assert_close(embedding_grad, -delta_v, rtol=1e-10, atol=1e-14)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", KINDS)
def test_keys_and_a_fixed_query_obey_eqs_3_and_4_at_eta_tau_q_squared(
    kind: ClassifierKind, tiny: TopicWordsData, generator: torch.Generator
) -> None:
    bags, tau = tiny.train, 0.3
    reader = classifier(kind, 5, 3, generator=generator)
    source = KeyQuery(bags.vocabulary, 4, variance=2.0, train_query=False, generator=generator)
    model = BagAttention(bags.vocabulary, 5, reader, scores=source, generator=generator)
    moved(model, generator)
    length = float(source.query.norm())
    delta_s, delta_v = written_updates(model.scores(), model.embeddings(), reader, length, bags)
    before_s, before_v = model.scores().detach(), model.embeddings().detach()
    cross_entropy(model(bags), bags.labels).backward()
    with torch.no_grad():
        for p in (source.key, model.embedding):
            assert p.grad is not None
            p -= tau * p.grad
    # Fixing q makes s linear in the keys, so one step of any length moves it by eq (4) exactly.
    eta = tau * length**2
    torch.testing.assert_close(model.scores() - before_s, eta * delta_s, rtol=1e-9, atol=1e-13)
    torch.testing.assert_close(model.embeddings() - before_v, eta * delta_v, rtol=1e-9, atol=1e-13)


@pytest.mark.usefixtures("float64")
def test_scores_together_never_move(tiny: TopicWordsData, generator: torch.Generator) -> None:
    # Softmax does not see a common shift: Σ_l a_l (v_l - v̄) = 0, so eq (4) adds up to zero.
    reader = classifier("TL", 5, 3, generator=generator)
    model = moved(BagAttention(tiny.task.vocabulary, 5, reader, generator=generator), generator)
    delta_s, _ = written_updates(model.scores(), model.embeddings(), reader, 1.0, tiny.train)
    assert abs(float(delta_s.sum())) < 1e-14
    assert float(delta_s.abs().max()) > 1e-3
