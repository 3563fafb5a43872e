"""The bag-of-words proxy against its two formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.tasks.sequence_pairs import SequencePairs

pytestmark = pytest.mark.usefixtures("float64")
SOURCES, TARGETS, WIDTH = 7, 6, 4


def built(sources: int = SOURCES, targets: int = TARGETS, width: int = WIDTH) -> WordProxy:
    return WordProxy(sources, targets, width, generator=torch.Generator().manual_seed(1))


def drawn(rows: int, padded: bool) -> SequencePairs:
    source = torch.Generator().manual_seed(0)
    x = torch.randint(0, SOURCES, (rows, 5), generator=source)
    y = torch.randint(0, TARGETS, (rows, 4), generator=source)
    if not padded:
        return SequencePairs(x, y)
    x_mask, y_mask = (
        torch.arange(n) < torch.randint(1, n + 1, (rows, 1), generator=source) for n in (5, 4)
    )
    return SequencePairs(x, y, x_mask, y_mask)


def words(ids: Tensor, mask: Tensor | None, row: int) -> Tensor:
    return ids[row] if mask is None else ids[row][mask[row]]


def slow(model: WordProxy, pairs: SequencePairs, rows: list[int]) -> Tensor:
    """Add up -log p over target tokens, one at a time."""
    total = torch.zeros(())
    for row in rows:
        x = words(pairs.source, pairs.source_mask, row)
        mean = torch.stack([model.W @ model.embedding[i] for i in x]).sum(dim=0) / len(x)
        log_p = torch.log_softmax(mean, dim=0)
        for o in words(pairs.target, pairs.target_mask, row):
            total = total - log_p[o]
    return total


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("rows", [3, 12])
def test_the_loss_and_its_gradient_are_those_of_single_tokens(rows: int, padded: bool) -> None:
    # Three pairs go through W themselves, with twelve the seven words do.
    model, pairs = built(), drawn(rows, padded)
    objective, trained = ProxyObjective(pairs), list(model.parameters())
    for chosen in (None, [2, 0], [1]):
        index = None if chosen is None else torch.tensor(chosen)
        fast = objective(model, index)
        expected = slow(model, pairs, list(range(rows)) if chosen is None else chosen)
        torch.testing.assert_close(fast, expected)
        torch.testing.assert_close(
            torch.autograd.grad(fast, trained), torch.autograd.grad(expected, trained)
        )


def test_the_probe_is_the_softmax_of_one_word() -> None:
    model, pairs = built(), drawn(4, True)
    found = model.log_beta(pairs)
    assert pairs.source_mask is not None
    assert pairs.target_mask is not None
    for row in range(4):
        for t in range(4):
            for position in range(5):
                i, o = pairs.source[row, position], pairs.target[row, t]
                logits = model.W @ model.embedding[i]
                torch.testing.assert_close(model.logits_by_word()[i], logits)
                here = pairs.source_mask[row, position] and pairs.target_mask[row, t]
                log_p = torch.log_softmax(logits, dim=0)[o]
                expected = log_p if here else torch.tensor(-torch.inf)
                torch.testing.assert_close(found[row, t, position], expected)


def test_a_sentence_of_one_word_is_read_as_the_probe_says() -> None:
    model = built()
    pairs = SequencePairs(torch.tensor([[4]]), torch.tensor([[2, 2]]))
    loss = ProxyObjective(pairs)(model)
    torch.testing.assert_close(loss, -model.log_beta(pairs).sum())


def test_entries_start_with_the_variance_of_the_theory() -> None:
    model = built(300, 300, 100)
    for p in model.parameters():
        assert p.std().item() == pytest.approx(0.1, rel=0.02)
        assert p.mean().item() == pytest.approx(0, abs=0.003)


def test_both_engines_train_it_to_the_same_place() -> None:
    # The dictionary is long enough to lie column after column in the engine's vector.
    pairs = SequencePairs(torch.arange(64).view(16, 4), torch.arange(16).view(16, 1) % 6)
    objective = ProxyObjective(pairs)
    flowing, stepping = built(64, TARGETS, 3), built(64, TARGETS, 3)
    before = objective(flowing).item()
    Flow().run(flowing, objective, time=0.5, record=[])
    Descent(lr=1e-3).run(stepping, objective, time=0.5, record=[])
    assert objective(flowing).item() < 0.95 * before
    torch.testing.assert_close(flowing.embedding, stepping.embedding, rtol=0, atol=1e-3)


def test_a_target_vocabulary_of_one_is_certain() -> None:
    pairs = SequencePairs(torch.tensor([[0, 1]]), torch.tensor([[0, 0]]))
    model = built(2, 1)
    assert ProxyObjective(pairs)(model).item() == 0
    assert not bool(model.log_beta(pairs).any())


def test_what_cannot_be_is_named() -> None:
    pairs = drawn(3, False)
    with pytest.raises(AttnscopeError, match="width = 0: expected 1 or more"):
        built(width=0)
    with pytest.raises(AttnscopeError, match="a proxy of 2 source and 6 target words"):
        ProxyObjective(pairs)(built(2))
    with pytest.raises(AttnscopeError, match="source with ids from 0 to 6: expected 0 to 1"):
        built(2).log_beta(pairs)
    with pytest.raises(AttnscopeError, match=r"source of shape \(3, 0\)"):
        ProxyObjective(SequencePairs(pairs.source[:, :0], pairs.target))


@pytest.mark.parametrize("probabilities", [False, True])
def test_velocity_is_the_change_along_the_negative_gradient(probabilities: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    model = WordProxy(4, 5, 6, generator=generator).double()
    loss = ProxyObjective(SequencePairs(torch.tensor([[1, 3, 3]]), torch.tensor([[2, 4, 0]])))
    slopes = torch.autograd.grad(loss(model), (model.embedding, model.W))
    tables = []
    for step in (1e-6, -1e-6):
        table = (model.embedding - step * slopes[0]) @ (model.W - step * slopes[1]).T
        tables.append(torch.softmax(table, dim=1) if probabilities else table)
    with torch.no_grad():
        velocity = model.velocity(loss, probabilities)
    assert torch.allclose(velocity, (tables[0] - tables[1]) / 2e-6, atol=1e-8)
