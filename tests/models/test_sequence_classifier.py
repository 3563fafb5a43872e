"""The classifier with attention against its formulas, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attnscope.engines import Descent
from attnscope.errors import AttnscopeError
from attnscope.models.sequence_classifier import (
    ClassifierObjective,
    SequenceClassifier,
    classifier_loss,
)
from attnscope.tasks.keyword import Keyword, LabelledSequences

pytestmark = pytest.mark.usefixtures("float64")
WORDS, L = 8, 6
KINDS = ("learned", "uniform")


def built(**options: Any) -> SequenceClassifier:
    torch.manual_seed(2)
    return SequenceClassifier(WORDS, embedding=3, hidden=4, attention_hidden=5, **options)


def drawn(rows: int = 4) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(0)
    ids = torch.randint(0, WORDS, (rows, L), generator=source)
    return ids, torch.arange(rows) % 2


def test_the_published_number_of_parameters_comes_out() -> None:
    model = SequenceClassifier(10)
    every = sum(p.numel() for p in model.parameters())
    assert every - model.embedding.weight.numel() == 1_274_882


@pytest.mark.parametrize("attention", KINDS)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_everything_is_the_formulas(attention: str, bidirectional: bool) -> None:
    model, (ids, _) = built(attention=attention, bidirectional=bidirectional), drawn()
    states, _ = model.encoder(model.embedding(ids))
    hidden, vector = model.scorer[0], model.scorer[2]
    look = model.evaluate(ids)
    for row, h in enumerate(states):
        scores = torch.relu(h @ hidden.weight.T + hidden.bias) @ vector.weight[0] + vector.bias
        alpha = torch.softmax(scores if attention == "learned" else 0 * scores, dim=0)
        gamma = h @ model.readout.weight[0] + model.readout.bias
        torch.testing.assert_close(model.attention_weights(ids)[row], alpha)
        torch.testing.assert_close(model.log_odds(ids)[row], gamma)
        logit = model.readout(alpha @ h)[0]
        torch.testing.assert_close(model.logits(ids)[row], logit)
        torch.testing.assert_close(look.logits[row], logit.detach())
    torch.testing.assert_close(look.weights, model.attention_weights(ids).detach())
    torch.testing.assert_close(look.log_odds, model.log_odds(ids).detach())


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, L), min_size=1, max_size=4),
    attention=st.sampled_from(KINDS),
    bidirectional=st.booleans(),
)
def test_padding_changes_no_number(lengths: list[int], attention: str, bidirectional: bool) -> None:
    model = built(attention=attention, bidirectional=bidirectional)
    ids, label = drawn(len(lengths))
    mask = torch.arange(L) < torch.tensor(lengths)[:, None]
    look, saliency = model.evaluate(ids, mask), model.saliency(ids, mask, label)
    near = {"rtol": 1e-12, "atol": 1e-12}
    for row, length in enumerate(lengths):
        here = slice(row, row + 1)
        one = ids[here, :length]
        alone = model.evaluate(one)
        torch.testing.assert_close(look.weights[row, :length], alone.weights[0], **near)
        torch.testing.assert_close(look.log_odds[row, :length], alone.log_odds[0], **near)
        torch.testing.assert_close(look.logits[row], alone.logits[0], **near)
        own = model.saliency(one, None, label[here])
        torch.testing.assert_close(saliency[row, :length], own[0], **near)
        assert not bool(look.weights[row, length:].any())
        assert bool(look.log_odds[row, length:].isnan().all())
        assert not bool(saliency[row, length:].any())


@pytest.mark.parametrize("attention", KINDS)
def test_saliency_is_how_the_loss_falls_with_more_of_a_word(attention: str) -> None:
    model, (ids, label) = built(attention=attention), drawn()
    found = model.saliency(ids, None, label)
    step = 1e-6
    for position in range(L):
        losses = []
        for gate in (1 + step, 1 - step):
            vectors = model.embedding(ids).detach().clone()
            vectors[:, position] *= gate
            states, _ = model.encoder(vectors)
            weights = model._weights(states, None)
            logits = (weights * model._log_odds(states)).sum(dim=1)
            losses.append(
                F.binary_cross_entropy_with_logits(logits, label.double(), reduction="none")
            )
        slope = (losses[0] - losses[1]).detach() / (2 * step)
        torch.testing.assert_close(found[:, position], -slope, rtol=1e-6, atol=1e-8)


def test_a_helpful_word_is_positive() -> None:
    # More of the keyword makes a positive sequence likelier: the loss falls, so Δ = -∂Loss > 0.
    model = built(attention="uniform", bidirectional=False)
    keyword, other = 3, 4
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        # The keyword alone moves the state, i, g and o opening with it, and the state the logit.
        model.embedding.weight[keyword] = 1.0
        model.encoder.weight_ih_l0.fill_(0.5)
        model.readout.weight.fill_(1.0)
    ids = torch.tensor([[other, keyword, other]])
    helpful = model.saliency(ids, None, torch.tensor([1]))[0]
    harmful = model.saliency(ids, None, torch.tensor([0]))[0]
    assert helpful[1] > 1e-3
    assert harmful[1] < -1e-3
    # A word whose embedding is zero says nothing, whatever its gate.
    assert helpful[0] == helpful[2] == 0


def test_saliency_leaves_no_gradient_behind_and_works_without_one() -> None:
    model, (ids, label) = built(), drawn()
    with torch.no_grad():
        without = model.saliency(ids, None, label)
    torch.testing.assert_close(without, model.saliency(ids, None, label))
    assert all(p.grad is None for p in model.parameters())
    frozen = built(trained="attention")
    torch.testing.assert_close(frozen.saliency(ids, None, label), without)


def test_only_attention_is_trained_if_so() -> None:
    def trained(**options: Any) -> set[str]:
        return {n.split(".")[0] for n, p in built(**options).named_parameters() if p.requires_grad}

    assert trained() == {"embedding", "encoder", "readout", "scorer"}
    assert trained(trained="attention") == {"scorer"}
    assert trained(attention="uniform") == {"embedding", "encoder", "readout"}


def test_the_loss_is_the_mean_over_rows_and_descent_lowers_it() -> None:
    task = Keyword(length=4, types=4)
    torch.manual_seed(0)
    model = SequenceClassifier(task.vocabulary, embedding=8, hidden=8, attention_hidden=8)
    batch = task.sample(50, 1)
    p = torch.sigmoid(model.logits(batch.source))
    right = torch.where(batch.label == 1, p, 1 - p)
    before = classifier_loss(model, batch).detach()
    torch.testing.assert_close(before, -right.log().mean().detach())
    engine = Descent(lr=1e-2, optimizer="adam", batch_size=32, samples=32 * 101, tick=1.0)
    engine.run(model, ClassifierObjective(task.stream(0)), time=100, record=[])
    assert classifier_loss(model, batch).item() < 0.5 * before.item()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vocabulary": 0}, "vocabulary = 0: expected 1 or more"),
        ({"hidden": 0}, "hidden = 0: expected 1 or more"),
        ({"attention": "hard"}, "attention = 'hard': expected one of"),
        ({"attention": "uniform", "trained": "attention"}, "something to train"),
    ],
)
def test_what_cannot_be_built_is_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        SequenceClassifier(**{"vocabulary": 4} | options)


def test_the_ends_of_what_can_be_run() -> None:
    model, (ids, label) = built(), drawn()
    assert bool((model.attention_weights(ids[:, :1]) == 1).all())
    torch.testing.assert_close(model.logits(ids[:, :1]), model.log_odds(ids[:, :1])[:, 0])
    with pytest.raises(AttnscopeError, match=r"sequences of shape \(4, 0\)"):
        model.logits(ids[:, :0])
    empty = torch.ones_like(ids, dtype=torch.bool)
    empty[1] = False
    for call in (model.logits, model.evaluate, model.log_odds, model.attention_weights):
        with pytest.raises(AttnscopeError, match="row 1 of the mask has no word"):
            call(ids, empty)
    with pytest.raises(AttnscopeError, match="row 1 of the mask has no word"):
        model.saliency(ids, empty, label)
    only = SequenceClassifier(1, embedding=3, hidden=4)
    batch = LabelledSequences(torch.zeros(2, 3, dtype=torch.int64), label[:2], label[:2])
    assert classifier_loss(only, batch).isfinite()
