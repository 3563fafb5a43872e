"""The LSTM over words against nn.LSTM, and padding against rows alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnscope.engines import Descent
from attnscope.models import lstm
from attnscope.models.lstm import GRU, LSTM, State
from attnscope.models.lstm_words import lstm_words

pytestmark = pytest.mark.usefixtures("float64")
WORDS, INPUTS, HIDDEN, ROWS, LENGTH = 6, 4, 5, 3, 7


def built(bidirectional: bool = False, layers: int = 1) -> LSTM:
    torch.manual_seed(3)
    return LSTM(INPUTS, HIDDEN, layers, bidirectional)


def drawn(seed: int = 0) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    table = torch.randn(WORDS, INPUTS, generator=source).requires_grad_()
    return table, torch.randint(0, WORDS, (ROWS, LENGTH), generator=source)


def a_start(directions: int) -> State:
    source = torch.Generator().manual_seed(9)
    shape = (directions, ROWS, HIDDEN)
    h, c = (torch.randn(shape, generator=source).requires_grad_() for _ in range(2))
    return h, c


def everything(out: Tensor, last: State, by: list[Tensor], weigh: int = 11) -> tuple[Tensor, ...]:
    """Return the values, and the gradients of a random sum of all of them."""
    source = torch.Generator().manual_seed(weigh)
    total = sum((part * torch.randn(part.shape, generator=source)).sum() for part in (out, *last))
    assert isinstance(total, Tensor)
    return out, *last, *torch.autograd.grad(total, by)


@pytest.fixture
def fast_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the runs through the written-out recursion."""
    calls: list[int] = []

    def counted(*args: Tensor) -> tuple[Tensor, Tensor]:
        calls.append(1)
        return lstm_words(*args)

    monkeypatch.setattr(lstm, "lstm_words", counted)
    return calls


def test_parameters_start_and_names_are_those_of_pytorch() -> None:
    ours = dict(built(True, 2).named_parameters())
    torch.manual_seed(3)
    theirs = dict(nn.LSTM(INPUTS, HIDDEN, 2, bidirectional=True).named_parameters())
    assert list(ours) == list(theirs)
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("started", [False, True])
def test_the_fast_path_has_the_values_and_gradients_of_pytorch(
    fast_calls: list[int], bidirectional: bool, started: bool
) -> None:
    cell = built(bidirectional)
    table, ids = drawn()
    start = a_start(1 + bidirectional) if started else None
    by = [table, *cell.parameters(), *(start or ())]
    ours = everything(*cell.over_words(table, ids, None, start), by)
    assert len(fast_calls) == 1 + bidirectional
    out, last = nn.LSTM.forward(cell, table[ids], start)  # type: ignore[arg-type]
    torch.testing.assert_close(ours, everything(out, last, by), rtol=1e-10, atol=1e-10)
    assert all(float(part.detach().abs().max()) > 1e-3 for part in ours)


def test_the_derivative_is_that_of_finite_differences() -> None:
    source = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=source).requires_grad_()

    ids = torch.tensor([[0, 1, 0], [2, 2, 1]])
    tensors = normal(3, 8), normal(8, 2), normal(2, 2), normal(2, 2)
    assert torch.autograd.gradcheck(
        lambda gates, matrix, h, c: lstm_words(gates, ids, matrix, h, c), tensors
    )


def test_a_long_dictionary_several_layers_and_padding_go_through_pytorch(
    fast_calls: list[int],
) -> None:
    table, ids = drawn()
    mask = torch.arange(LENGTH) < torch.tensor([[7], [3], [1]])
    built(layers=2).over_words(table, ids)
    built().over_words(table, ids, mask)
    built().over_words(table, ids[:1, :5])
    assert not fast_calls
    built().over_words(table, ids[:1, :6])
    built().over_words(table, ids, torch.ones_like(mask))
    assert len(fast_calls) == 2


def test_frozen_parameters_make_no_graph() -> None:
    cell = built().requires_grad_(False)
    table, ids = drawn()
    out, last = cell.over_words(table.detach(), ids)
    assert not any(part.requires_grad for part in (out, *last))
    with torch.no_grad():
        again, _ = built().over_words(table, ids)
    assert torch.equal(out, again)


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, LENGTH), min_size=1, max_size=4),
    layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    gru=st.booleans(),
    started=st.booleans(),
)
def test_padding_changes_no_number(
    lengths: list[int], layers: int, bidirectional: bool, gru: bool, started: bool
) -> None:
    torch.manual_seed(3)
    cell = (GRU if gru else LSTM)(INPUTS, HIDDEN, layers, bidirectional)
    table, words = drawn()
    longest = max(lengths)
    ids = words[torch.arange(len(lengths)) % ROWS, :longest]
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    shape = (layers * (1 + bidirectional), len(lengths), HIDDEN)
    start = tuple(torch.randn(shape) for _ in range(1 if gru else 2)) if started else None
    out, last = cell.over_words(table, ids, mask, start)
    for row, length in enumerate(lengths):
        before = None if start is None else tuple(part[:, row : row + 1] for part in start)
        alone, end = cell.over_words(table, ids[row : row + 1, :length], None, before)
        torch.testing.assert_close(out[row, :length], alone[0], rtol=0, atol=1e-13)
        assert not bool(out[row, length:].any())
        for part, own in zip(last, end, strict=True):
            torch.testing.assert_close(part[:, row], own[:, 0], rtol=0, atol=1e-13)


def test_descent_takes_the_steps_it_takes_with_pytorch() -> None:
    class Model(nn.Module):
        def __init__(self, fast: bool) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.table, self.cell = nn.Embedding(WORDS, INPUTS), LSTM(INPUTS, HIDDEN)
            self.fast = fast

        def loss(self, rows: Tensor) -> Tensor:
            words = ids[rows]
            table = self.table.weight
            run = self.cell.over_words(table, words) if self.fast else self.cell(table[words])
            return (run[0] - 0.3).square().mean()

    _, ids = drawn()
    trained = []
    for fast in (True, False):
        model = Model(fast)
        engine = Descent(optimizer="adam", lr=1e-2, batch_size=2, samples=ROWS, tick=1.0)
        engine.run(model, lambda model, rows: model.loss(rows), time=6, record=[])
        trained.append(list(model.parameters()))
    torch.testing.assert_close(*trained, rtol=1e-10, atol=1e-10)
