"""Sequences of Gaussian tokens, answered by a diagonal attention head that has to be found."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnscope.bounds import Count, Finite, Natural, check_fields
from attnscope.errors import AttnscopeError


@dataclass(frozen=True)
class TeacherHead:
    """What a head learns from: samples of tokens, and the diagonals of the head that answers them.

    The diagonals are padded with zeros to the width.
    """

    width: Count = 6
    """d, entries of a token."""
    tokens: Count = 6
    """Tokens of a sample."""
    samples: Count = 60
    """Samples; all of them make every step."""
    teacher_scores: tuple[Finite, ...] = (1.5, -1.0)
    """Diagonal of the teacher's W_K W_Qᵀ."""
    teacher_values: tuple[Finite, ...] = (2.0, 0.0, 1.2, 0.0, -0.7)
    """Diagonal of the teacher's W_V W_Oᵀ."""
    data: Natural = 3
    """Seed of the tokens."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("teacher_scores", "teacher_values"):
            given = getattr(self, name)
            if len(given) > self.width:
                raise AttnscopeError(
                    f"{name} has {len(given)} entries with width = {self.width}: expected as many "
                    "as a token has, or fewer."
                )
        if not any(self.teacher_values):
            raise AttnscopeError(
                f"teacher_values = {self.teacher_values}: expected one that is not 0; a teacher "
                "without values answers 0 to everything."
            )
        if self.tokens == 1 and any(self.teacher_scores):
            raise AttnscopeError(
                "tokens = 1: a row of one token has attention 1 on it whatever the scores, so "
                "W_K W_Qᵀ cannot be learned; expected two tokens or more, or teacher_scores = ()."
            )

    def sample(self) -> tuple[Tensor, Tensor]:
        """Return the tokens, shape ``(sample, token, d)``, and the teacher's diagonals, (2, d)."""
        source = torch.Generator().manual_seed(self.data)
        shape = (self.samples, self.tokens, self.width)
        tokens = torch.randn(shape, generator=source, dtype=torch.float64)
        teacher = torch.zeros(2, self.width, dtype=torch.float64)
        for row, given in enumerate((self.teacher_scores, self.teacher_values)):
            teacher[row, : len(given)] = torch.tensor(given, dtype=torch.float64)
        return tokens, teacher
