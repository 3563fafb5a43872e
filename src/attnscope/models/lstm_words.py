"""One direction of an LSTM whose inputs are few: the product with W_ih is done once per word.

With the inputs x_t = table[ids_t] the term W_ih x_t + b_ih + b_hh of the gates is a row of

    P = table W_ihᵀ + b_ih + b_hh,

as many rows as there are words, where ``nn.LSTM`` multiplies once per word and position. The
derivative is written out. With G_t = ∂L/∂gates_t, going back in time,

    ∂L/∂h_{t-1} += G_t W_hh,    ∂L/∂W_hh = Σ_t G_tᵀ h_{t-1},    ∂L/∂P[w] = Σ_{ids_t = w} G_t,

and the second is one product over all times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def lstm_words(
    gates: Tensor, ids: Tensor, recurrent: Tensor, h: Tensor, c: Tensor
) -> tuple[Tensor, Tensor]:
    """Run one direction of one layer over words.

    It can be differentiated once: the derivative is not made of operations that autograd records.

    Args:
        gates: P, shape ``(word, 4H)``; the gates are in the order i, f, g, o.
        ids: the words, shape ``(row, position)``.
        recurrent: W_hh, shape ``(4H, H)``.
        h: first hidden state, shape ``(row, H)``.
        c: first cell state, likewise.

    Returns:
        The states after every word, ``(row, position, H)``, and the last cell state.
    """
    out, last = _Words.apply(gates, ids, recurrent, h, c)
    return out.transpose(0, 1), last


class _Words(torch.autograd.Function):
    """The recursion and its derivative, with time as the first axis of everything."""

    @staticmethod
    def forward(
        ctx: Any, gates: Tensor, ids: Tensor, recurrent: Tensor, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        rows, length = ids.shape
        size = h.shape[1]
        by_time = ids.T.contiguous()
        kept = gates.new_empty(length, rows, 4 * size)
        hidden = gates.new_empty(length + 1, rows, size)
        cells = gates.new_empty(length + 1, rows, size)
        bounded = gates.new_empty(length, rows, size)
        hidden[0], cells[0] = h, c
        for t in range(length):
            gate = torch.index_select(gates, 0, by_time[t], out=kept[t])
            gate.addmm_(hidden[t], recurrent.T)
            into, g, o = gate.split([2 * size, size, size], dim=1)
            i, f = into.sigmoid_().chunk(2, dim=1)
            g.tanh_()
            o.sigmoid_()
            cell = torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g)
            torch.mul(o, torch.tanh(cell, out=bounded[t]), out=hidden[t + 1])
        ctx.save_for_backward(by_time, recurrent, kept, hidden, cells, bounded)
        ctx.words = len(gates)
        return hidden[1:], cells[length].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_last: Tensor) -> tuple[Tensor | None, ...]:
        by_time, recurrent, kept, hidden, cells, bounded = ctx.saved_tensors
        length, _, size = bounded.shape
        slopes = torch.empty_like(kept)
        dh, dc = torch.zeros_like(d_last), d_last.clone()
        for t in reversed(range(length)):
            i, f, g, o = kept[t].chunk(4, dim=1)
            di, df, dg, do = slopes[t].chunk(4, dim=1)
            dh += d_out[t]
            torch.mul(dh, bounded[t], out=do)
            _through_tanh(dh.mul_(o), bounded[t])
            dc += dh
            torch.mul(dc, g, out=di)
            torch.mul(dc, cells[t], out=df)
            torch.mul(dc, i, out=dg)
            _through_sigmoid(slopes[t, :, : 2 * size], kept[t, :, : 2 * size])
            _through_tanh(dg, g)
            _through_sigmoid(do, o)
            dc *= f
            dh = slopes[t] @ recurrent
        flat = slopes.view(-1, 4 * size)
        d_recurrent = flat.T @ hidden[:-1].view(-1, size)
        d_gates = flat.new_zeros(ctx.words, 4 * size).index_add_(0, by_time.view(-1), flat)
        return d_gates, None, d_recurrent, dh, dc


def _through_sigmoid(slope: Tensor, value: Tensor) -> None:
    """Multiply by σ' = σ (1 - σ), in place."""
    slope.mul_(value).addcmul_(slope, value, value=-1)


def _through_tanh(slope: Tensor, value: Tensor) -> None:
    """Multiply by tanh' = 1 - tanh², in place."""
    slope.addcmul_(slope * value, value, value=-1)
