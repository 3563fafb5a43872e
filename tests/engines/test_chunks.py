"""A loss by chunks is the loss of the whole batch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnscope import AttnscopeError, Descent, Flow, Linear, Observable, Record, train
from attnscope.engines.chunks import Chunked
from attnscope.engines.parameters import flattened

ROWS = 23
ids = torch.randint(0, 64, (ROWS, 5), generator=torch.Generator().manual_seed(1))
labels = torch.randint(0, 3, (ROWS,), generator=torch.Generator().manual_seed(2))


def small() -> nn.Module:
    """A model with a table that is kept column after column, and a parameter nobody uses."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu", batch_first=True)
    model = nn.Sequential(nn.Embedding(64, 4), layer, nn.Linear(4, 3))
    model.unused = nn.Parameter(torch.ones(2))
    return model.double()


def loss(model: nn.Module, rows: Tensor | None = None) -> Tensor:
    """Return the mean over rows."""
    x, y = (ids, labels) if rows is None else (ids[rows], labels[rows])
    return F.cross_entropy(model(x).mean(1), y)


@settings(max_examples=8, deadline=None)
@given(size=st.integers(1, ROWS + 3))
def test_value_and_gradient_are_those_of_the_whole_batch(size: int) -> None:
    model, chunked = small(), Chunked(loss, rows=ROWS, size=size)
    with flattened(model) as flat:
        whole, parts = torch.full((2, len(flat.vector)), torch.nan, dtype=torch.float64)
        expected = flat.value_and_gradient(loss, model, whole)
        assert flat.value_and_gradient(chunked, model, parts) == pytest.approx(expected, rel=1e-14)
        assert torch.allclose(parts, whole, rtol=1e-12, atol=1e-15)
        by_autograd = torch.empty_like(whole)
        flat.value_and_gradient(chunked.__call__, model, by_autograd)
        assert torch.allclose(by_autograd, whole, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("engine", [Flow(), Descent(lr=0.5)], ids=["flow", "descent"])
def test_a_trajectory_by_chunks_is_that_of_the_whole_batch(engine: Flow | Descent) -> None:
    read = Observable("table", lambda m: m.get_parameter("0.weight"), ("word", "d"))
    runs = [
        train(small(), each, engine, time=6.0, record=[Record((read,), Linear(6))])
        for each in (loss, Chunked(loss, rows=ROWS, size=7))
    ]
    whole, chunked = (torch.from_numpy(run["observables/table"].to_numpy()) for run in runs)
    assert (whole[0, -1] - whole[0, 0]).abs().max() > 0.01
    assert torch.allclose(chunked, whole, rtol=1e-9, atol=1e-11)


def test_only_one_chunk_is_in_memory() -> None:
    """What a chunk's graph holds is free before the next chunk is looked at."""
    held: list[int] = []
    alive: set[int] = set()

    class Large(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
            number = len(held)
            alive.add(number)
            held.append(len(alive))
            ctx.number = number  # type: ignore[attr-defined]
            return x.clone()

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> Tensor:
            alive.discard(ctx.number)  # type: ignore[attr-defined]
            return g

    model = nn.Linear(2, 2)
    chunked = Chunked(lambda m, rows: Large.apply(m.weight).sum(), rows=9, size=2)
    with flattened(model) as flat:
        flat.value_and_gradient(chunked, model, torch.empty_like(flat.vector))
    assert held == [1] * 5


def test_bad_input_is_answered_with_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match=r"Chunked\(size=0\): expected 1 or more"):
        Chunked(loss, rows=10, size=0)
    with pytest.raises(AttnscopeError, match=r"Chunked\(rows=-1\)"):
        Chunked(loss, rows=-1, size=1)
    engine = Descent(lr=0.1, batch_size=4, samples=ROWS)
    with pytest.raises(AttnscopeError, match="mini-batch of 4 rows: expected an"):
        engine.run(small(), Chunked(loss, rows=ROWS, size=5), time=1.0, record=[])
    per_row = Chunked(lambda m, rows: m(ids[rows]).mean((1, 2)), rows=ROWS, size=5)
    with pytest.raises(AttnscopeError, match="expected a tensor with one element"):
        Flow().run(small(), per_row, time=1.0, record=[])
    constant = Chunked(lambda m, rows: torch.ones(()), rows=ROWS, size=5)
    with pytest.raises(AttnscopeError, match="depends on none of its trainable parameters"):
        Flow().run(small(), constant, time=1.0, record=[])
