"""What the agreement study trains and reads on parallel text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Descent
from attnscope.models.seq2seq import Seq2Seq, cross_entropy
from attnscope.models.word_proxy import ProxyObjective, WordProxy
from attnscope.studies.snell2021._agreement_gold import Gold, read_gold
from attnscope.studies.snell2021._agreement_readings import Look, Readings
from attnscope.studies.snell2021._agreement_sentences import cell_counts, look, scored
from attnscope.studies.snell2021._agreement_training import adam_in_order, sampled
from attnscope.tasks.length_batches import LengthBatches
from attnscope.tasks.parallel_pieces import ParallelPieces, PiecePairs, parallel_pieces

if TYPE_CHECKING:
    from attnscope.datasets.kinds import ParallelText
    from attnscope.studies.snell2021.agreement import Agreement

EPOCHS = {"multi30k": 20, "iwslt14": 30, "news_commentary": 40}
"""Epochs in the released code; a set of the user's own has those of Multi30k."""
BATCH, WIDTH, LAYERS, DROPOUT = 16, 256, 2, 0.5
PROXY_BATCH, PROXY_EPOCHS, PROXY_WIDTH, PROXY_RATE = 64, 30, 256, 1e-3
SALIENT = 100


def evaluation_steps(last: int) -> tuple[int, ...]:
    """Return 0, 50, 100, 500, 1000, 1500, then every 2000, and the last step (A.8).

    >>> evaluation_steps(4500)
    (0, 50, 100, 500, 1000, 1500, 2000, 4000, 4500)
    """
    steps = {0, 50, 100, 500, 1000, 1500, *range(2000, last + 1, 2000), last}
    return tuple(sorted(step for step in steps if step <= last))


@dataclass(frozen=True, eq=False)
class TranslationSide:
    """Parallel text and the models of sections 2.1 and 2.3.

    Args:
        study: the spec.
        text: the set.
    """

    study: Agreement
    text: ParallelText

    kind = "parallel"

    @cached_property
    def data(self) -> ParallelPieces:
        """The sentences as pieces."""
        study = self.study
        return parallel_pieces(
            self.text,
            source=study.source,
            vocabulary=study.vocabulary,
            most=study.evaluated,
            limit=study.limit,
            train_most=study.train_most or None,
        )

    @cached_property
    def splits(self) -> dict[str, PiecePairs]:
        """Validation pairs, and as many training pairs."""
        train = self.data.train
        order = sampled(len(train), len(self.data.dev))
        return {"dev": self.data.dev, "train": train.rows(np.sort(order))}

    @cached_property
    def gold(self) -> Gold | None:
        """Pairs that people aligned, if there are some."""
        if not self.study.gold:
            return None
        turned = self.data.languages != self.text.languages
        return read_gold(self.study.gold, self.data.pieces, turned=turned)

    @property
    def default_steps(self) -> int:
        """Steps of the released code's number of epochs."""
        return EPOCHS.get(self.text.name, EPOCHS["multi30k"]) * self._batches(0).per_epoch

    @property
    def evaluation(self) -> tuple[int, ...]:
        """Steps at which models are read."""
        return evaluation_steps(self.study.length)

    def engine(self, case: str, seed: int) -> Descent:
        """Return Adam on batches that are served in order."""
        length = steps = self.study.length
        rate = self.study.rate
        if case == "proxy":
            steps = self._proxy_batches(seed).per_epoch * (self.study.proxy_epochs or PROXY_EPOCHS)
            rate = PROXY_RATE
        return adam_in_order(steps, rate=rate, seed=seed, length=length)

    def model(self, case: str, seed: int) -> nn.Module:
        """Return the model of a case before training: the released code's, or smaller."""
        torch.manual_seed(seed)
        words = len(self.data.words)
        if case == "proxy":
            return WordProxy(words, words, PROXY_WIDTH)
        return Seq2Seq(
            words,
            embedding=self.study.embedding or WIDTH,
            hidden=self.study.hidden,
            layers=LAYERS,
            bidirectional=True,
            output="relu",
            projection=True,
            attention="uniform" if case == "uniform" else "learned",
            trained="attention" if case == "frozen" else "all",
            dropout=DROPOUT,
        )

    def loss(self, case: str, seed: int) -> Callable[[nn.Module, Tensor], Tensor]:
        """Return the loss on the batch of a number."""
        pairs = self.data.train
        if case == "proxy":
            batches, objective = self._proxy_batches(seed), self._proxy_objective

            def proxy_loss(model: nn.Module, number: Tensor) -> Tensor:
                rows = torch.from_numpy(batches.rows(int(number[0])))
                return objective(model, rows)  # type: ignore[arg-type]

            return proxy_loss
        batches = self._batches(seed)

        def loss(model: nn.Module, number: Tensor) -> Tensor:
            return cross_entropy(model, pairs.batch(batches.rows(int(number[0]))))  # type: ignore[arg-type]

        return loss

    def readings(self, case: str, first: bool) -> Readings:
        """Return what is read off the model of a case; saliency off the first normal run only."""
        return Readings(
            {split: self._looker(split, first) for split in self.splits},
            {split: int(cell_counts(pairs).sum()) for split, pairs in self.splits.items()},
            {split: self._salient_cells(split) for split in self.splits},
            None if case == "proxy" else self._bleu,
        )

    def truth(self) -> xr.Dataset:
        """Return the sentences that are read, piece by piece."""
        variables = {"word": ("id", np.array(self.data.words, dtype=object))}
        for split, pairs in self.splits.items():
            lengths, times = pairs.source_lengths, pairs.target_lengths
            sources = [np.tile(row, n) for row, n in zip(pairs.source, times, strict=True)]
            variables |= {
                f"length_{split}": (f"row_{split}", np.repeat(lengths, times)),
                f"sentence_{split}": (f"row_{split}", np.repeat(np.arange(len(pairs)), times)),
                f"source_{split}": (f"cell_{split}", np.concatenate(sources)),
                f"target_{split}": (f"row_{split}", np.concatenate(pairs.target)),
            }
        attrs = {
            "kind": self.kind,
            "data": self.text.name,
            "facts": json.dumps(self.data.facts),
        }
        return xr.Dataset(variables, attrs=attrs)

    @property
    def salient(self) -> int:
        """Sentences whose saliency is read."""
        return self.study.salient or SALIENT

    def _salient_cells(self, split: str) -> int:
        return int(cell_counts(self.splits[split])[: self.salient].sum())

    def _looker(self, split: str, first: bool) -> Callable[[nn.Module], Look]:
        pairs, room = self.splits[split], self._salient_cells(split)
        salient = self.salient if first else 0
        return lambda model: look(model, pairs, salient, room)

    def _bleu(self, model: nn.Module) -> float:
        assert isinstance(model, Seq2Seq)
        return scored(model, self.data.dev, self.data.pieces, self.data.dev_texts)

    def _batches(self, seed: int) -> LengthBatches:
        pairs = self.data.train
        size = min(self.study.batch or BATCH, len(pairs))
        # By source, and among equal ones by target: sources are then hardly ever filled up.
        longest = int(pairs.target_lengths.max()) + 1
        return LengthBatches(pairs.source_lengths * longest + pairs.target_lengths, size, seed)

    def _proxy_batches(self, seed: int) -> LengthBatches:
        pairs = self.data.train
        return LengthBatches(pairs.source_lengths, min(PROXY_BATCH, len(pairs)), seed)

    @cached_property
    def _proxy_objective(self) -> ProxyObjective:
        pairs = self.data.train
        return ProxyObjective(pairs.batch(range(len(pairs))))
