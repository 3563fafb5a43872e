"""Saliency against one backward pass a target word, and against what a word does to the loss."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from attnscope.models.seq2seq import Seq2Seq
from attnscope.models.seq2seq.saliency import translation_saliency
from attnscope.tasks.sequence_pairs import SequencePairs

pytestmark = pytest.mark.usefixtures("float64")
WORDS = 9
PAPER = {"output": "relu", "bidirectional": True, "layers": 2, "projection": True, "dropout": 0.5}
CASES: list[dict[str, Any]] = [
    {},
    PAPER,
    {"output": "added", "heads": 2, "heads_pooled": "mean"},
    {"attention": "uniform", "cell": "gru"},
]
cases = pytest.mark.parametrize("options", CASES, ids=lambda o: "-".join(map(str, o.values())))


def built(options: dict[str, Any], seed: int = 1) -> Seq2Seq:
    torch.manual_seed(seed)
    return Seq2Seq(WORDS, embedding=3, hidden=4, **options)


def drawn(padded: bool) -> SequencePairs:
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(3, WORDS, (3, 5), generator=generator)
    target = torch.randint(3, WORDS, (3, 4), generator=generator)
    if not padded:
        return SequencePairs(source, target)
    here = torch.arange(5) < torch.tensor([[4], [5], [2]])
    there = torch.arange(4) < torch.tensor([[4], [1], [3]])
    return SequencePairs(source * here, target * there, here, there)


def log_p(model: Seq2Seq, pairs: SequencePairs, gate: Tensor) -> Tensor:
    """Return log p_t(y_t) with gates on the embeddings, by the definition."""
    states = model.states(pairs, gate[:, :, None] * model.embedding.weight[pairs.source])
    logits = model.logits(states, model.attention_weights(states))
    return torch.log_softmax(logits, dim=2).gather(2, pairs.target[:, :, None])[:, :, 0]


@cases
@pytest.mark.parametrize("padded", [False, True])
def test_it_is_the_slope_of_each_words_log_probability(
    options: dict[str, Any], padded: bool
) -> None:
    model, pairs = built(options), drawn(padded)
    ours = translation_saliency(model, pairs)
    assert model.training
    model.eval()
    gate = torch.ones(pairs.source.shape, requires_grad=True)
    value = log_p(model, pairs, gate)
    for t in range(4):
        by_hand = torch.autograd.grad(value[:, t].sum(), gate, retain_graph=True)[0]
        if pairs.target_mask is not None:
            by_hand = by_hand * pairs.target_mask[:, t, None]
        torch.testing.assert_close(ours[:, t], by_hand, rtol=1e-12, atol=1e-14)
    if pairs.source_mask is not None:
        assert (ours[~pairs.source_mask[:, None].expand_as(ours)] == 0).all()


def test_a_word_is_positive_if_more_of_it_makes_the_target_likelier() -> None:
    """The sign of the released pipeline is the opposite one: it negates twice."""
    model, pairs = built({}), drawn(False)
    model.eval()
    delta = translation_saliency(model, pairs)
    step = 1e-6
    for place in range(5):
        gate = torch.ones(pairs.source.shape)
        gate[:, place] += step
        more = log_p(model, pairs, gate)
        gate[:, place] -= 2 * step
        less = log_p(model, pairs, gate)
        torch.testing.assert_close(
            delta[:, :, place], (more - less) / (2 * step), rtol=1e-6, atol=1e-8
        )
    assert (delta.abs() > 1e-6).all()


def test_the_model_and_the_random_numbers_stay_as_they_are() -> None:
    model, pairs = built(PAPER | {"trained": "attention"}), drawn(True)
    before = {name: p.clone() for name, p in model.named_parameters()}
    trained = [p.requires_grad for p in model.parameters()]
    random = torch.get_rng_state()
    with torch.no_grad():
        first = translation_saliency(model, pairs)
    assert torch.equal(random, torch.get_rng_state())
    assert trained == [p.requires_grad for p in model.parameters()]
    assert all(p.grad is None and torch.equal(before[n], p) for n, p in model.named_parameters())
    assert model.training
    assert torch.equal(first, translation_saliency(model, pairs))
