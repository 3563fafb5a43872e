"""The output network at every pair of a source and a target position, for the lexical probe.

N is asked T · L times and each time gives a probability to every word: this is most of what a
reading costs, so it is done slice by slice in the same memory.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

SLICE = 2**20
"""Numbers of a slice: a few megabytes, which a processor keeps at hand."""


class OnePosition:
    """log softmax(N)_{y_t} where the first layer of N is a sum, one term of l and one of t.

    Args:
        readout: the last layer, or ``None`` if the sum is what the softmax is of.
        activate: applied to the sum before the last layer, in place.
        words: number of words.
        length: source positions at most.
        width: length of the terms.
        like: whose dtype is taken.
    """

    def __init__(
        self,
        readout: nn.Linear | None,
        activate: Callable[[Tensor], Tensor],
        words: int,
        length: int,
        width: int,
        like: Tensor,
    ) -> None:
        self.readout, self.activate = readout, activate
        self.steps = max(1, SLICE // (length * max(words, width)))
        self.logits, self.logs = like.new_empty(2, self.steps * length, words)

    def row(self, by_source: Tensor, by_target: Tensor, right: Tensor) -> Tensor:
        """Return log β of a pair.

        Args:
            by_source: shape ``(L, width)``.
            by_target: shape ``(T, width)``.
            right: the right words, shape ``(T,)``.

        Returns:
            Shape ``(T, L)``.
        """
        parts = zip(by_target.split(self.steps), right.split(self.steps), strict=True)
        return torch.cat([self._slice(by_source, part, words) for part, words in parts])

    def _slice(self, by_source: Tensor, by_target: Tensor, right: Tensor) -> Tensor:
        length = len(by_source)
        logits = (by_source + by_target[:, None, :]).flatten(0, 1)
        logs = self.logs[: len(logits)]
        if self.readout is not None:
            hidden, logits = self.activate(logits), self.logits[: len(logits)]
            torch.addmm(self.readout.bias, hidden, self.readout.weight.T, out=logits)
        torch.log_softmax(logits, dim=1, out=logs)
        return logs.gather(1, right.repeat_interleave(length)[:, None]).view(-1, length)
