"""One look at a model gives several readings; they share the pass that they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnscope.engines import Observable


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen on one split.

    Attributes:
        alpha: attention of every cell.
        lexical: log odds (classification) or log (translation) of the lexical probe β.
        delta: saliency Δ of the first cells.
        accuracy: share of right labels, or of right words.
        loss: mean of -log p.
    """

    alpha: Tensor
    lexical: Tensor
    delta: Tensor
    accuracy: float
    loss: float


class Readings:
    """Observables of both splits.

    The first observable of a split takes the look, and those after it read what was seen: records
    are read in their order, all of them at the same step.

    Args:
        lookers: for each split, the function that looks at a model.
        cells: number of cells of each split.
        salient: number of cells whose saliency is read.
        bleu: the score of translations of the validation sentences; NaN unless given.
    """

    def __init__(
        self,
        lookers: dict[str, Callable[[nn.Module], Look]],
        cells: dict[str, int],
        salient: dict[str, int],
        bleu: Callable[[nn.Module], float] | None = None,
    ) -> None:
        self.lookers, self.cells, self.salient, self.bleu = lookers, cells, salient, bleu
        self._seen: dict[str, Look] = {}

    def observables(self) -> tuple[Observable, ...]:
        """Return everything that is read, split by split."""
        out: list[Observable] = []
        for split in self.lookers:
            out += self._of(split)
        out.append(
            Observable("bleu", self._bleu, (), "", "BLEU of greedy translations of validation")
        )
        return tuple(out)

    def _of(self, split: str) -> list[Observable]:
        def alpha(model: nn.Module) -> Tensor:
            self._seen[split] = self.lookers[split](model)
            return self._seen[split].alpha

        def seen(name: str) -> Callable[[nn.Module], Tensor]:
            return lambda model: torch.as_tensor(getattr(self._seen[split], name))

        where = "validation" if split == "dev" else "training sample"
        return [
            Observable(f"alpha_{split}", alpha, (f"cell_{split}",), "", f"attention, {where}"),
            Observable(
                f"lexical_{split}",
                seen("lexical"),
                (f"cell_{split}",),
                "",
                f"lexical probe, {where}: log odds of β (two classes), log β (translation)",
            ),
            Observable(
                f"delta_{split}", seen("delta"), (f"salient_{split}",), "", f"saliency, {where}"
            ),
            Observable(f"accuracy_{split}", seen("accuracy"), (), "", f"accuracy, {where}"),
            Observable(f"loss_{split}", seen("loss"), (), "nats", f"mean of -log p, {where}"),
        ]

    def _bleu(self, model: nn.Module) -> Tensor:
        return torch.as_tensor(torch.nan if self.bleu is None else self.bleu(model))
