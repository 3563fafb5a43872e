"""The runs of ``li2023.attention``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from attnscope.bounds import Positive, Several
from attnscope.engines import Adam, Final, Linear, Observable, Record, Sgd
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem
from attnscope.models import TopicTransformer
from attnscope.studies.li2023._held_out import HeldOutStudy, own
from attnscope.studies.li2023.attention.claims import POOL4, SCALED, claims
from attnscope.studies.li2023.attention.figures import figures, tables


@dataclass(frozen=True)
class AttentionStudy(HeldOutStudy):
    """One layer, one head, one-hot words, cross-entropy: where does a trained model attend.

    Besides the settings of the paper, the two of SGD are run with inputs √V times as large, which
    have unit variance as after a layer norm. For SGD that is the same as a learning rate V times
    and a start √V times as large. Steps are the released code's, 10,000 documents × 20 epochs / 40.
    """

    points: Several = 26
    adam: tuple[Positive, ...] = (0.003, 0.01, 0.03)
    """Learning rates of Adam."""
    sgd: tuple[Positive, ...] = (0.01, 0.03)
    """Learning rates of SGD."""

    quick: ClassVar = {"seeds": 2, "steps": 1000, "points": 11, "documents": 50}
    claims, figures, tables = claims, figures, tables

    def check(self) -> None:
        """Check the task, and that there are learning rates."""
        super().check()
        if not self.adam or not self.sgd:
            raise AttnscopeError(
                f"adam = {self.adam} and sgd = {self.sgd}: expected a learning rate or more of "
                "each."
            )

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of Table 3, such as ``Adam 0.003``."""
        return (*(f"Adam {lr:g}" for lr in self.adam), *(f"SGD {lr:g}" for lr in self.sgd))

    @property
    def pool(self) -> list[str]:
        """The settings that Table 4 draws its runs from."""
        return [case for case in POOL4 if case in self.settings]

    @property
    def cases(self) -> tuple[str, ...]:
        """The settings of Table 3, and SGD with inputs of unit variance."""
        return (*self.settings, *(f"SGD {lr:g}{SCALED}" for lr in self.sgd))

    def describe(self) -> str:
        """Say how long runs are."""
        return f"{self.training.steps:,} steps of SGD or Adam on fresh documents"

    def engine(self, case: str, seed: int) -> Adam | Sgd:
        """Return the optimizer that the case names."""
        name, rate = case.removesuffix(SCALED).split()
        if name == "Adam":
            return self.training.adam(float(rate))
        return self.training.sgd(float(rate) * self.scale(case) ** 2)

    def scale(self, case: str) -> float:
        """Return how many times as large inputs are."""
        return self.task().vocabulary ** 0.5 if case.endswith(SCALED) else 1.0

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one setting with one seed; all settings start from the same model."""
        task = self.task()
        std = (3 * task.vocabulary) ** -0.5 * self.scale(case)
        model = TopicTransformer(
            task.vocabulary,
            biases=True,
            noise=std,
            value_noise=std,
            generator=torch.Generator().manual_seed(seed),
        )
        documents = self.held_out(seed)
        held = documents.mask if documents.mask is not None else torch.ones_like(documents.selected)
        mask = (documents.visible == 0) & held

        def masked(model: nn.Module) -> Tensor:
            share = (own(model).attention(documents) * mask[:, :, None]).sum(dim=1)
            return share[held & ~mask].mean()

        def value(model: nn.Module) -> Tensor:
            return own(model).word_map()

        *curves, shuffled = self.readings(documents, seed)
        ends = (
            shuffled,
            Observable("masked", masked, (), "", "attention that words pay to [MASK]"),
            Observable("value_matrix", value, ("word_out", "word_in"), "", "W^V from word to word"),
        )
        records = [Record(tuple(curves), Linear(self.points)), Record(ends, Final(), "snapshot")]
        return self.problem(model, seed, records)
