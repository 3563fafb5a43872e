"""Pairs of word sequences, what goes in and what must come out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError

PAD, START, END = 0, 1, 2
"""Word ids of what fills up a row, and of the marks of beginning and end."""
SPECIALS = 3
"""The first number of a word."""


@dataclass(frozen=True, eq=False)
class SequencePairs:
    """Sources and targets, one pair a row; words are numbered from 3.

    Args:
        source: word ids, int64 of shape ``(pair, position)``, filled up with PAD on the right.
        target: word ids to predict, likewise; START is not in it.
        source_mask: true where there is a word; ``None`` when no source is filled up.
        target_mask: the same for targets.
    """

    source: Tensor
    target: Tensor
    source_mask: Tensor | None = None
    target_mask: Tensor | None = None

    def __post_init__(self) -> None:
        if self.source.dim() != 2 or self.target.dim() != 2 or len(self.source) != len(self.target):
            raise AttnscopeError(
                f"source of shape {tuple(self.source.shape)} and target of shape "
                f"{tuple(self.target.shape)}: expected two dimensions and as many rows."
            )
        for name in ("source", "target"):
            words, mask = getattr(self, name), getattr(self, f"{name}_mask")
            if words.dtype != torch.int64:
                raise AttnscopeError(f"{name} holds {words.dtype}: expected int64 word ids.")
            if mask is None:
                continue
            if mask.shape != words.shape or mask.dtype != torch.bool:
                raise AttnscopeError(
                    f"{name}_mask is {mask.dtype} of shape {tuple(mask.shape)}: expected bool of "
                    f"{name}'s shape, {tuple(words.shape)}."
                )
            if not bool(mask.any(dim=1).all()):
                empty = int((~mask.any(dim=1)).nonzero()[0, 0])
                raise AttnscopeError(f"{name} {empty} is empty: expected one word or more.")

    def __len__(self) -> int:
        return len(self.source)

    def rows(self, index: Tensor) -> SequencePairs:
        """Return some of the pairs, by number."""
        source_mask, target_mask = (
            None if mask is None else mask[index] for mask in (self.source_mask, self.target_mask)
        )
        return SequencePairs(self.source[index], self.target[index], source_mask, target_mask)
