"""The regression problem of Song 2024 with random data: nothing to find out but to fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnscope.bounds import check_fields
from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class RandomRegression:
    """N sequences of n tokens in R^D with one label a token; all entries are N(0, 1).

    The poster of Song 2024 states its theorems for X_i in R^{n×D} and y_i in R^n and gives no data
    of that kind; standard normal data are this package's choice.

    Args:
        sequences: N.
        length: n, tokens of a sequence.
        width: D, entries of a token.
    """

    sequences: int = 6
    length: int = 4
    width: int = 16

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("sequences", "length", "width"):
            if getattr(self, name) < 1:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected 1 or more.")

    @property
    def labels(self) -> int:
        """N n, the number of labels to fit."""
        return self.sequences * self.length

    def sample(self, seed: int) -> tuple[Tensor, Tensor]:
        """Return X, shape ``(N, n, D)``, and y, shape ``(N, n)``, in double precision."""
        rng = np.random.default_rng([seed, 0x50176])
        shape = (self.sequences, self.length)
        x, y = rng.standard_normal((*shape, self.width)), rng.standard_normal(shape)
        return torch.from_numpy(x), torch.from_numpy(y)
