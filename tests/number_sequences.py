"""Labelled sequences of numbers, for tests of what reads them."""

from __future__ import annotations

import torch
from torch import Tensor

from attnscope.tasks.sequence_rows import Batch


class Numbers:
    """Sequences of five tokens of six; the label says whether token 1 is commoner than token 2."""

    def __init__(self, count: int) -> None:
        self.ids = torch.randint(6, (count, 5), generator=torch.Generator().manual_seed(0))
        self.labels = ((self.ids == 1).sum(1) > (self.ids == 2).sum(1)).long()

    def __len__(self) -> int:
        return len(self.ids)

    def batch(self, rows: Tensor) -> Batch:
        return Batch(self.ids[rows], None, self.labels[rows])
