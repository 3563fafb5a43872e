"""What the agreement study trains and reads alike on labelled and on parallel text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import xarray as xr
from numpy.typing import NDArray
from torch import Tensor, nn

from attnscope.engines import Given, Observable, Record
from attnscope.probes.lexicon.aligned_pieces import AlignedPieces
from attnscope.probes.lexicon.cells import Cells
from attnscope.tasks.length_batches import LengthBatches

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement.study import Agreement

PROXY_BATCH, PROXY_WIDTH = 64, 256
WHERE = {"dev": "validation", "train": "training sample", "gold": "sentences with gold alignments"}
Numbers = NDArray[np.int64]
Values = tuple[Tensor | None, Tensor | None, Tensor | None]
Pass = tuple[Numbers, int, float, Values]
"""The numbers of some texts, right answers, the sum of -log p; attention, lexical probe and
saliency of every cell, ``None`` for what was not read."""


@dataclass(frozen=True, eq=False)
class SplitReading:
    """What was read off a model on some texts."""

    alpha: Tensor
    """Attention of every cell."""
    lexical: Tensor
    """Log odds (classification) or log (translation) of the lexical probe β."""
    delta: Tensor
    """Saliency Δ of the first cells."""
    accuracy: float
    """Share of right labels, or of right words."""
    loss: float
    """Mean of -log p."""


def put_together(passes: Iterable[Pass], sizes: Numbers, room: int, answers: int) -> SplitReading:
    """Put together what was read in several passes.

    Args:
        passes: what each of them read.
        sizes: number of cells of every text.
        room: number of cells for saliency, NaN where it was not read.
        answers: number of labels or words that a model has to find.
    """
    cells = Cells(sizes)
    alpha, lexical = torch.full((2, cells.count), torch.nan)
    delta = torch.full((room,), torch.nan)
    right, loss = 0, 0.0
    for rows, hits, nats, values in passes:
        here = torch.from_numpy(cells.places(rows))
        for flat, own in zip((alpha, lexical, delta), values, strict=True):
            if own is not None:
                flat[here] = own
        right, loss = right + hits, loss + nats
    return SplitReading(alpha, lexical, delta, right / answers, loss / answers)


def observables(read: Callable[..., SplitReading], split: str, *arguments: Any) -> list[Observable]:
    """Return everything that ``read(model, *arguments)`` reads on a split.

    The first observable does so, and those after it show what was seen: records are read in their
    order, all of them at the same step.
    """
    seen: list[SplitReading] = []

    def take(model: nn.Module) -> Tensor:
        seen[:] = [read(model, *arguments)]
        return seen[0].alpha

    def part(name: str) -> Callable[[nn.Module], Tensor]:
        return lambda model: torch.as_tensor(getattr(seen[0], name))

    cell, where = (f"cell_{split}",), WHERE[split]
    odds = f"lexical probe, {where}: log odds of β (two classes), log β (translation)"
    return [
        Observable(f"alpha_{split}", take, cell, "", f"attention, {where}"),
        Observable(f"lexical_{split}", part("lexical"), cell, "", odds),
        Observable(
            f"delta_{split}", part("delta"), (f"salient_{split}",), "", f"saliency, {where}"
        ),
        Observable(f"accuracy_{split}", part("accuracy"), (), "", f"accuracy, {where}"),
        Observable(f"loss_{split}", part("loss"), (), "nats", f"mean of -log p, {where}"),
    ]


def checkpoints(early: Sequence[int], every: int, last: int) -> tuple[int, ...]:
    """Return the steps at which models are read: early ones, then evenly, and the last (A.8).

    >>> checkpoints((10, 50, 100), 250, 600)
    (0, 10, 50, 100, 250, 500, 600)
    """
    steps = {0, *early, *range(every, last + 1, every), last}
    return tuple(sorted(step for step in steps if step <= last))


class Setup:
    """A data set, and the models that are trained and read on it.

    Args:
        study: the spec.
        text: the set.
    """

    kind: ClassVar[str]
    paper: ClassVar[Mapping[str, Any]]
    """What 0 stands for in the spec; words where that is no single number."""
    salient: ClassVar[int]
    """Texts whose saliency is read unless the spec has another number."""
    early: ClassVar[tuple[int, ...]]
    """The first checkpoints."""
    every: ClassVar[int]
    """Steps from one checkpoint to the next after those."""
    proxy_rates: ClassVar[Mapping[str, float]]
    """The proxy's learning rate in the released code, by data set; under "" that of all others."""
    look: Callable[..., SplitReading]
    """``look(model, texts, salient, room)`` reads a model on texts, in batches of about one length,
    and the saliency of the first ``salient`` ones into ``room`` cells."""

    def __init__(self, study: Agreement, text: Any) -> None:
        self.study, self.text = study, text

    @property
    def data(self) -> Any:
        """The texts as numbers, to learn from and to validate on."""
        raise NotImplementedError

    @property
    def splits(self) -> dict[str, Any]:
        """The texts that are read: those of validation, and some of training."""
        raise NotImplementedError

    def lengths(self, case: str) -> Numbers:
        """Return what training texts are sorted by, so that those of a batch are of one length."""
        raise NotImplementedError

    def objective(self, case: str) -> Callable[[Any, Numbers], Tensor]:
        """Return the loss of a model on training texts of some numbers."""
        raise NotImplementedError

    def model(self, case: str, seed: int) -> nn.Module:
        """Return the model of a case before training."""
        raise NotImplementedError

    @property
    def gold(self) -> AlignedPieces | None:
        """Pairs that people aligned, if there are some."""
        return None

    def bleu(self, model: nn.Module) -> float:
        """Return BLEU of translations of the validation texts; NaN where there are none."""
        return torch.nan

    @property
    def facts(self) -> dict[str, object]:
        """What is known of the data."""
        return self.data.facts

    def batches(self, case: str, seed: int) -> LengthBatches:
        """Return the batches of a run; a batch is a function of seed and number."""
        size = PROXY_BATCH if case == "proxy" else self.study.wanted("batch")
        lengths = self.lengths(case)
        return LengthBatches(lengths, min(size, len(lengths)), seed)

    def loss(self, case: str, seed: int) -> Callable[[nn.Module, Tensor], Tensor]:
        """Return the loss on the batch of a number."""
        batches, objective = self.batches(case, seed), self.objective(case)
        return lambda model, number: objective(model, batches.rows(int(number[0])))

    def proxy_steps(self, seed: int) -> int:
        """Return how many steps the proxy takes."""
        return self.batches("proxy", seed).per_epoch * self.study.wanted("proxy_epochs")

    def records(self, case: str, first: bool) -> list[Record]:
        """Return what is read off the model of a case; saliency off the first normal run only."""
        found, salient = [], self.study.salient or self.salient
        for split, texts in self.splits.items():
            pairs = islice(zip(*texts.sides, strict=True), salient)
            room = sum(len(source) * len(target) for source, target in pairs)
            found += observables(self.look, split, texts, salient if first else 0, room)
        meaning = "BLEU of greedy translations of validation"
        found.append(Observable("bleu", lambda m: torch.as_tensor(self.bleu(m)), (), "", meaning))
        steps = checkpoints(self.early, self.every, self.study.length)
        return [Record(tuple(found), Given(steps))]

    def truth(self) -> xr.Dataset:
        """Return the texts that are read, word by word."""
        variables = {"word": ("id", np.array(self.data.words, dtype=object))}
        for split, texts in self.splits.items():
            sources, targets = texts.sides
            times = [len(target) for target in targets]
            tiled = [np.tile(source, n) for source, n in zip(sources, times, strict=True)]
            row, cell = f"row_{split}", f"cell_{split}"
            variables |= {
                f"length_{split}": (row, np.repeat([len(source) for source in sources], times)),
                f"sentence_{split}": (row, np.repeat(np.arange(len(sources)), times)),
                f"source_{split}": (cell, np.concatenate(tiled)),
                f"target_{split}": (row, np.concatenate(targets)),
            }
        attrs = {"kind": self.kind, "data": self.text.name, "facts": json.dumps(self.facts)}
        return xr.Dataset(variables, attrs=attrs)
