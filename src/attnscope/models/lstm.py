"""An LSTM over words, with the numbers of ``nn.LSTM`` and padding that changes none of them.

    i, f, g, o = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh,
    c_t = σ(f) c_{t-1} + σ(i) tanh(g),    h_t = σ(o) tanh(c_t).

Where words come from a short dictionary W_ih x_t takes few values: see
:mod:`attnscope.models.lstm_words`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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

        One layer without padding whose dictionary is shorter than the batch goes a faster way, on
        a processor; it can be differentiated once.
        """
        few = self.num_layers == 1 and len(table) <= ids.numel() and table.is_cpu
        if not few or row_lengths(ids.shape, mask) is not None:
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
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        if isinstance(cell, nn.LSTM) and x.is_cpu:
            data, last = lstm_packed(cell, packed, start)
            packed = packed._replace(data=data)
        else:
            packed, last = cell(packed, before)
        out, _ = pad_packed_sequence(packed, batch_first=True, total_length=x.shape[1])
    return out, tuple(last) if isinstance(cell, nn.LSTM) else (last,)
