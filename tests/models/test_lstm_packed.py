"""Packed rows against nn.LSTM on the same packed rows: values, gradients, random numbers."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from attnscope.models import lstm
from attnscope.models.lstm import LSTM
from attnscope.models.lstm_packed import State, lstm_packed

pytestmark = pytest.mark.usefixtures("float64")
INPUTS, HIDDEN, LENGTH = 4, 5, 6


def built(bidirectional: bool, layers: int, dropout: float = 0.0) -> nn.LSTM:
    torch.manual_seed(3)
    return nn.LSTM(
        INPUTS, HIDDEN, layers, batch_first=True, bidirectional=bidirectional, dropout=dropout
    )


def packed(x: Tensor, lengths: list[int]) -> PackedSequence:
    return pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)


def everything(data: Tensor, last: State, by: list[Tensor]) -> tuple[Tensor, ...]:
    """Return the values, and the gradients of a random sum of all of them."""
    source = torch.Generator().manual_seed(11)
    total = sum((part * torch.randn(part.shape, generator=source)).sum() for part in (data, *last))
    assert isinstance(total, Tensor)
    return data, *last, *torch.autograd.grad(total, by)


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, LENGTH), min_size=1, max_size=5),
    layers=st.integers(1, 2),
    bidirectional=st.booleans(),
    started=st.booleans(),
)
def test_values_and_gradients_are_those_of_pytorch(
    lengths: list[int], layers: int, bidirectional: bool, started: bool
) -> None:
    cell = built(bidirectional, layers, 0.5 * (layers - 1))
    x = torch.randn(len(lengths), max(lengths), INPUTS).requires_grad_()
    shape = (layers * (1 + bidirectional), len(lengths), HIDDEN)
    start = tuple(torch.randn(shape).requires_grad_() for _ in "hc") if started else None
    by = [x, *cell.parameters(), *(start or ())]
    torch.manual_seed(7)
    ours = everything(*lstm_packed(cell, packed(x, lengths), start), by)
    after = torch.get_rng_state()
    torch.manual_seed(7)
    out, last = cell(packed(x, lengths), start)
    assert torch.equal(after, torch.get_rng_state())
    torch.testing.assert_close(ours, everything(out.data, last, by), rtol=1e-12, atol=1e-13)


def test_padded_rows_go_this_way(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*args: object) -> tuple[Tensor, State]:
        calls.append(1)
        return lstm_packed(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(lstm, "lstm_packed", counted)
    cell = LSTM(INPUTS, HIDDEN)
    x = torch.randn(2, LENGTH, INPUTS)
    mask = torch.arange(LENGTH) < torch.tensor([[3], [LENGTH]])
    padded, (h, _) = cell.over_vectors(x, mask)
    assert len(calls) == 1
    alone, (last, _) = cell.over_vectors(x[:1, :3])
    assert len(calls) == 1
    torch.testing.assert_close(padded[:1, :3], alone, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(h[:, :1], last, rtol=1e-12, atol=1e-13)
    assert (padded[0, 3:] == 0).all()


def test_several_passes_back_through_one_pass_forth() -> None:
    cell = built(True, 2)
    x = torch.randn(2, LENGTH, INPUTS).requires_grad_()
    out, _ = lstm_packed(cell, packed(x, [LENGTH, 2]), None)
    each = [torch.autograd.grad(part.sum(), x, retain_graph=True)[0] for part in out]
    whole = torch.autograd.grad(out.sum(), x)[0]
    torch.testing.assert_close(torch.stack(each).sum(dim=0), whole, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("lengths", [(7, 7, 7), (7, 2, 5)])
@pytest.mark.parametrize("layers", [1, 2])
def test_gated_words_are_gated_vectors(lengths: tuple[int, ...], layers: int) -> None:
    torch.manual_seed(5)
    cell = LSTM(4, 5, layers, bidirectional=True)
    table, ids = torch.randn(6, 4), torch.randint(0, 6, (3, 7))
    mask = torch.arange(7) < torch.tensor(lengths)[:, None]
    gate = torch.rand(3, 7).requires_grad_()
    packed, last = cell.packed_words(table, ids, mask, gate=gate)
    ours, _ = pad_packed_sequence(packed, batch_first=True, total_length=7)
    theirs, end = cell.over_vectors(gate[:, :, None] * table[ids], mask)
    weigh = torch.randn_like(ours)
    slopes = [torch.autograd.grad((out * weigh).sum(), gate)[0] for out in (ours, theirs)]
    for one, other in ((ours, theirs), *zip(last, end, strict=True), slopes):
        torch.testing.assert_close(one, other)


def test_words_without_a_gradient_are_the_same_words() -> None:
    torch.manual_seed(6)
    cell = LSTM(4, 5, bidirectional=True)
    table, ids = torch.randn(6, 4), torch.randint(0, 6, (3, 7))
    mask = torch.arange(7) < torch.tensor([3, 7, 1])[:, None]
    with torch.no_grad():
        out, last = cell.over_words(table, ids, mask)
    expected, end = cell.over_words(table, ids, mask)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(last, end)
