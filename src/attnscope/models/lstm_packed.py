"""An LSTM over rows of different lengths, packed, with the derivative written out.

PyTorch runs packed rows step by step under autograd: the gradient of W_hh is then a product and a
sum of whole matrices for every position. Here it is one product over all words. With the gates'
slopes G_t = ∂L/∂gates_t, going back in time,

    ∂L/∂h_{t-1} += G_t W_hh,    ∂L/∂W_hh = Σ_t G_tᵀ h_{t-1},    ∂L/∂W_ih = Σ_t G_tᵀ x_t.

Rows are sorted by length, longest first, and words lie position after position, so that the rows
that have a word at position t are the first ones, and lie side by side. Read from right to left
rows come in one after another, each with its own first state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence

State = tuple[Tensor, ...]
"""Last states, each ``(layer × direction, row, hidden)``: (h, c) of an LSTM, (h,) of a GRU."""


def lstm_packed(
    cell: nn.LSTM,
    packed: PackedSequence,
    start: State | None,
    project: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> tuple[Tensor, State]:
    """Run all layers and directions of an LSTM over packed rows.

    Values and random numbers (of dropout) are those of ``cell(packed, start)``. It can be
    differentiated once.

    Args:
        cell: whose weights are taken, with biases and without projections.
        packed: the rows, packed in any order of lengths.
        start: first states h and c, each ``(layer × direction, row, H)`` in the order of the rows
            before they were sorted; zero unless given.
        project: the gates' part that comes from words, for W_ih and the sum of biases of a
            direction of the first layer; W_ih x + b of ``packed.data`` unless given.

    Returns:
        The states after every word in the order of ``packed.data``, and the last states.
    """
    x, counts = packed.data, packed.batch_sizes.tolist()
    order, back = packed.sorted_indices, packed.unsorted_indices
    assert order is not None
    assert back is not None
    ways = 2 if cell.bidirectional else 1
    if start is None:
        weight = cell.get_parameter("weight_hh_l0")
        zeros = weight.new_zeros(cell.num_layers * ways, counts[0], cell.hidden_size)
        h0, c0 = zeros, zeros
    else:
        h0, c0 = (part.index_select(1, order) for part in start)
    hs, cs = [], []
    for layer in range(cell.num_layers):
        outs = []
        for way in range(ways):
            suffix = f"_l{layer}" + ("_reverse" if way else "")
            w_ih, w_hh, b_ih, b_hh = (
                cell.get_parameter(f"{kind}{suffix}")
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            if layer == 0 and project is not None:
                gates = project(w_ih, b_ih + b_hh)
            else:
                gates = torch.addmm(b_ih + b_hh, x, w_ih.T)
            number = layer * ways + way
            out, h, c = _Packed.apply(gates, w_hh, h0[number], c0[number], counts, bool(way))
            outs.append(out)
            hs.append(h)
            cs.append(c)
        x = torch.cat(outs, dim=1) if ways > 1 else outs[0]
        if layer + 1 < cell.num_layers:
            x = F.dropout(x, cell.dropout, cell.training)
    last = tuple(torch.stack(parts).index_select(1, back) for parts in (hs, cs))
    return x, last


class _Packed(torch.autograd.Function):
    """One direction of one layer: the recursion and its derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        recurrent: Tensor,
        h: Tensor,
        c: Tensor,
        counts: list[int],
        reverse: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        words, size = len(gates), h.shape[1]
        kept = gates.clone()
        # The state before each word lies beside the gates, since going back needs it.
        before_h, before_c = gates.new_empty(2, words, size)
        hidden, bounded = gates.new_empty(2, words, size)
        now_h, now_c = h.clone(), c.clone()
        for first, count in _positions(counts, reverse):
            here = slice(first, first + count)
            before_h[here], before_c[here] = now_h[:count], now_c[:count]
            gate = kept[here].addmm_(before_h[here], recurrent.T)
            into, g, o = gate.split([2 * size, size, size], dim=1)
            i, f = into.sigmoid_().chunk(2, dim=1)
            g.tanh_()
            o.sigmoid_()
            cell = torch.mul(f, before_c[here], out=now_c[:count]).addcmul_(i, g)
            torch.tanh(cell, out=bounded[here])
            torch.mul(o, bounded[here], out=hidden[here])
            now_h[:count] = hidden[here]
        ctx.save_for_backward(recurrent, kept, before_h, before_c, bounded)
        ctx.counts, ctx.reverse = counts, reverse
        return hidden, now_h, now_c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Tensor | None, ...]:
        recurrent, kept, before_h, before_c, bounded = ctx.saved_tensors
        size = bounded.shape[1]
        slopes = torch.empty_like(kept)
        # Rows that have no word here carry the slope of their last, or first, state along.
        all_dh, all_dc = d_h.clone(), d_c.clone()
        for first, count in reversed(_positions(ctx.counts, ctx.reverse)):
            here = slice(first, first + count)
            gate, slope, tanh = kept[here], slopes[here], bounded[here]
            dh, dc = all_dh[:count], all_dc[:count]
            i, f, g, o = gate.chunk(4, dim=1)
            di, df, dg, do = slope.chunk(4, dim=1)
            dh += d_out[here]
            torch.mul(dh, tanh, out=do)
            dh.mul_(o)
            dc.add_(dh).addcmul_(dh * tanh, tanh, value=-1)
            torch.mul(dc, g, out=di)
            torch.mul(dc, before_c[here], out=df)
            torch.mul(dc, i, out=dg)
            dg.addcmul_(dg * g, g, value=-1)
            for part, value in ((slope[:, : 2 * size], gate[:, : 2 * size]), (do, o)):
                part.mul_(value).addcmul_(part, value, value=-1)
            dc *= f
            torch.mm(slope, recurrent, out=dh)
        d_recurrent = slopes.T @ before_h if ctx.needs_input_grad[1] else None
        return slopes, d_recurrent, all_dh, all_dc, None, None


def _positions(counts: list[int], reverse: bool) -> list[tuple[int, int]]:
    """Return the first word and the number of rows of every position, in the order of reading."""
    found, first = [], 0
    for count in counts:
        found.append((first, count))
        first += count
    return found[::-1] if reverse else found
