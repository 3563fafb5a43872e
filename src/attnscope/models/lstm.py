"""An LSTM over words, with the numbers of ``nn.LSTM`` and padding that changes none of them.

    i, f, g, o = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh,
    c_t = σ(f) c_{t-1} + σ(i) tanh(g),    h_t = σ(o) tanh(c_t).

Where words come from a short dictionary W_ih x_t takes few values: see
:mod:`attnscope.models.lstm_words`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from attnscope.models.lstm_packed import State, lstm_packed
from attnscope.models.lstm_words import lstm_words
from attnscope.models.sequences import row_lengths


class LSTM(nn.LSTM):
    """``nn.LSTM`` with rows first: the same parameters, names, start and numbers.

    Args:
        inputs: length of an embedding.
        hidden: H, length of a state of one direction.
        layers: number of layers.
        bidirectional: read from right to left too, and put both states side by side.
        dropout: share of the outputs between layers that is dropped in training.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            inputs,
            hidden,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout,
        )

    def over_words(
        self, table: Tensor, ids: Tensor, mask: Tensor | None = None, start: State | None = None
    ) -> tuple[Tensor, State]:
        """Run over ``table[ids]``; arguments and results as in :meth:`over_vectors`.

        Two cases go a faster way, on a processor. One layer without padding whose dictionary is
        shorter than the batch can be differentiated once. Where no gradient is asked for, a word
        is multiplied with W_ih once, however often it occurs.
        """
        few = self.num_layers == 1 and len(table) <= ids.numel() and table.is_cpu
        padded = row_lengths(ids.shape, mask) is not None
        if padded and table.is_cpu and not torch.is_grad_enabled():
            packed, last = self.packed_words(table, ids, mask, start)
            out, _ = pad_packed_sequence(packed, batch_first=True, total_length=ids.shape[1])
            return out, last
        if not few or padded:
            return self.over_vectors(table[ids], mask, start)
        if start is None:
            zeros = table.new_zeros(self.num_directions, len(ids), self.hidden_size)
            start = (zeros, zeros)
        directions = [
            self._direction(table, ids, start, direction)
            for direction in range(self.num_directions)
        ]
        outs, hs, cs = zip(*directions, strict=True)
        return torch.cat(outs, dim=2) if len(outs) > 1 else outs[0], (
            torch.stack(hs),
            torch.stack(cs),
        )

    def packed_words(
        self,
        table: Tensor,
        ids: Tensor,
        mask: Tensor | None = None,
        start: State | None = None,
        gate: Tensor | None = None,
    ) -> tuple[PackedSequence, State]:
        """Run over ``gate · table[ids]``, with each distinct word multiplied with W_ih once.

        Since W_ih (g x) = g (W_ih x), the slope of a gate is the dot product of W_ih x with the
        slope of the LSTM's gates, and nothing is multiplied with W_ihᵀ on the way back.

        Args:
            table: a vector for every word, shape ``(word, inputs)``.
            ids: the words, shape ``(row, position)``.
            mask: where there is a word, likewise.
            start: the state before the first word.
            gate: a number for every position, shape ``(row, position)``; 1 unless given. Of the
                first layer's inputs it alone has a gradient, which can be taken once.

        Returns:
            The states after every word, packed, so that what is made of them need not be made of
            padding too; and the state after the last word of every row.
        """
        lengths = row_lengths(ids.shape, mask)
        if lengths is None:
            lengths = torch.full((len(ids),), ids.shape[1], device="cpu")
        packed = pack_padded_sequence(ids, lengths, batch_first=True, enforce_sorted=False)
        distinct, where = packed.data.unique(return_inverse=True)
        vectors = table[distinct]
        factor = None
        if gate is not None:
            gates = pack_padded_sequence(gate, lengths, batch_first=True, enforce_sorted=False)
            factor = gates.data

        def project(w_ih: Tensor, bias: Tensor) -> Tensor:
            if factor is None:
                return torch.addmm(bias, vectors, w_ih.T)[where]
            return _Gated.apply(factor, (vectors @ w_ih.T)[where], bias)

        data, last = lstm_packed(self, packed, start, project)
        return packed._replace(data=data), last

    def over_vectors(
        self, x: Tensor, mask: Tensor | None = None, start: State | None = None
    ) -> tuple[Tensor, State]:
        """Run over vectors.

        Args:
            x: the vectors, shape ``(row, position, inputs)``.
            mask: where there is a word, ``(row, position)``; padding is on the right. ``None``
                means everywhere.
            start: the state before the first word; zero unless given.

        Returns:
            The states, ``(row, position, directions × H)``, zero where there is no word; and the
            state after the last word of every row.
        """
        return run_padded(self, x, mask, start)

    @property
    def num_directions(self) -> int:
        """How many ways the words are read."""
        return 2 if self.bidirectional else 1

    def _direction(
        self, table: Tensor, ids: Tensor, start: State, direction: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return all states, the last and the last cell, of reading one way."""
        suffix = "_l0_reverse" if direction else "_l0"
        w_ih, w_hh, b_ih, b_hh = (
            self.get_parameter(f"{kind}{suffix}")
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        gates = torch.addmm(b_ih + b_hh, table, w_ih.T)
        ids = ids.flip(1) if direction else ids
        out, c = lstm_words(gates, ids, w_hh, start[0][direction], start[1][direction])
        return out.flip(1) if direction else out, out[:, -1], c


class _Gated(torch.autograd.Function):
    """g p + b for a number g and a vector p of every word; only g has a slope."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, projected: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(projected)
        return torch.addcmul(bias, gate[:, None], projected)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        (projected,) = ctx.saved_tensors
        return torch.linalg.vecdot(slope, projected), None, None


class GRU(nn.GRU):
    """``nn.GRU`` with the methods of :class:`LSTM`."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            inputs,
            hidden,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout,
        )

    def over_words(
        self, table: Tensor, ids: Tensor, mask: Tensor | None = None, start: State | None = None
    ) -> tuple[Tensor, State]:
        """Run over ``table[ids]``; arguments and results as in :meth:`LSTM.over_vectors`."""
        return self.over_vectors(table[ids], mask, start)

    def over_vectors(
        self, x: Tensor, mask: Tensor | None = None, start: State | None = None
    ) -> tuple[Tensor, State]:
        """Run over vectors; arguments and results as in :meth:`LSTM.over_vectors`."""
        return run_padded(self, x, mask, start)


def run_padded(
    cell: nn.LSTM | nn.GRU, x: Tensor, mask: Tensor | None, start: State | None
) -> tuple[Tensor, State]:
    """Run a recurrent network of PyTorch over rows of different lengths, packed by the mask.

    Where rows do differ an LSTM on a processor can be differentiated once.
    """
    lengths = row_lengths(x.shape[:2], mask)
    before = start if start is None or isinstance(cell, nn.LSTM) else start[0]
    if lengths is None:
        out, last = cell(x, before)
    else:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        if isinstance(cell, nn.LSTM) and x.is_cpu:
            data, last = lstm_packed(cell, packed, start)
            packed = packed._replace(data=data)
        else:
            packed, last = cell(packed, before)
        out, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
    return out, tuple(last) if isinstance(cell, nn.LSTM) else (last,)
