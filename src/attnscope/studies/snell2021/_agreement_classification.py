"""What the agreement study trains and reads on labelled text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from attnscope.engines import Descent
from attnscope.errors import AttnscopeError
from attnscope.models.class_proxy import ClassProxy, class_proxy_loss
from attnscope.models.sequence_classifier import SequenceClassifier, classifier_loss
from attnscope.studies.snell2021._agreement_cells import Cells
from attnscope.studies.snell2021._agreement_readings import Look, Readings
from attnscope.studies.snell2021._agreement_training import adam_in_order, sampled
from attnscope.studies.snell2021._agreement_vectors import Vectors, word_vectors
from attnscope.tasks.keyword import LabelledSequences
from attnscope.tasks.length_batches import LengthBatches
from attnscope.tasks.word_sequences import Texts, WordSequences, word_sequences

if TYPE_CHECKING:
    from attnscope.datasets.kinds import LabelledText
    from attnscope.studies.snell2021.agreement import Agreement

STEPS = 4000
EMBEDDING, BATCH = 300, 32
PROXY_BATCH, PROXY_EPOCHS, PROXY_WIDTH = 64, 60, 256
SLOW_PROXY, PROXY_RATE = ("imdb", "yelp", "amazon"), {True: 5e-5, False: 1.5e-4}
"""The proxy's learning rate in the released code, which is smaller for long reviews."""
READ = 500
"""Training texts that are read at most, and texts whose saliency is read unless more are wanted:
reading costs as much as training on a third as many texts."""
CELLS_AT_ONCE = 2000
"""Positions that are read in one pass."""


def evaluation_steps(last: int) -> tuple[int, ...]:
    """Return 0, 10, 50, 100, ..., 250, then every 250, and the last step (A.8).

    >>> evaluation_steps(600)
    (0, 10, 50, 100, 150, 200, 250, 500, 600)
    """
    steps = {0, 10, 50, 100, 150, 200, *range(250, last + 1, 250), last}
    return tuple(sorted(step for step in steps if step <= last))


@dataclass(frozen=True, eq=False)
class ClassificationSide:
    """Labelled text and the models of section 2.4.

    Args:
        study: the spec.
        text: the set.
    """

    study: Agreement
    text: LabelledText

    kind = "labelled"
    default_steps = STEPS

    @cached_property
    def data(self) -> WordSequences:
        """The texts as words."""
        study = self.study
        two = study.classes
        if len(two) not in (0, 2):
            raise AttnscopeError(
                f"classes = {two}: expected two names, the negative class first, or none."
            )
        return word_sequences(
            self.text,
            classes=(two[0], two[1]) if two else None,
            most=study.evaluated,
            limit=study.limit,
            train_most=study.train_most or None,
        )

    @cached_property
    def vectors(self) -> Vectors:
        """Where word embeddings start."""
        return word_vectors(self.study.glove, self.data.words, self.study.embedding or EMBEDDING)

    @cached_property
    def splits(self) -> dict[str, Texts]:
        """Validation texts, and training texts for Table 7."""
        train = self.data.train
        order = sampled(len(train), min(READ, len(self.data.dev)))
        sample = Texts([train.ids[i] for i in order], train.labels[order])
        return {"dev": self.data.dev, "train": sample}

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
            rate = PROXY_RATE[self.text.name in SLOW_PROXY]
        return adam_in_order(steps, rate=rate, seed=seed, length=length)

    def model(self, case: str, seed: int) -> nn.Module:
        """Return the model of a case before training."""
        torch.manual_seed(seed)
        words = len(self.data.words)
        if case == "proxy":
            return ClassProxy(words, PROXY_WIDTH)
        model = SequenceClassifier(
            words,
            embedding=self.study.embedding or EMBEDDING,
            hidden=self.study.hidden,
            attention_hidden=self.study.hidden,
            attention="uniform" if case == "uniform" else "learned",
            trained="attention" if case == "frozen" else "all",
        )
        self.vectors.put_into(model.embedding)
        return model

    def loss(self, case: str, seed: int) -> Callable[[nn.Module, Tensor], Tensor]:
        """Return the loss on the batch of a number."""
        texts = self.data.train
        if case == "proxy":
            batches, function = self._proxy_batches(seed), class_proxy_loss
        else:
            batches = LengthBatches(texts.lengths, self._batch(self.study.batch or BATCH), seed)
            function = classifier_loss  # type: ignore[assignment]

        def loss(model: nn.Module, number: Tensor) -> Tensor:
            return function(model, texts.batch(batches.rows(int(number[0]))))  # type: ignore[arg-type]

        return loss

    def readings(self, case: str, first: bool) -> Readings:
        """Return what is read off the model of a case; saliency off the first normal run only."""
        return Readings(
            {split: self._looker(split, case, first) for split in self.splits},
            {split: Cells(texts.lengths).count for split, texts in self.splits.items()},
            {split: self._salient(split) for split in self.splits},
        )

    def truth(self) -> xr.Dataset:
        """Return the texts that are read, word by word."""
        variables = {"word": ("id", np.array(self.data.words, dtype=object))}
        for split, texts in self.splits.items():
            variables |= {
                f"length_{split}": (f"row_{split}", texts.lengths),
                f"sentence_{split}": (f"row_{split}", np.arange(len(texts))),
                f"source_{split}": (f"cell_{split}", np.concatenate(texts.ids)),
                f"target_{split}": (f"row_{split}", texts.labels),
            }
        facts = {
            "training texts": len(self.data.train),
            "validation texts": len(self.data.dev),
            "validation texts are": self.data.dev_from,
            "words in the vocabulary": len(self.data.words),
            "unknown words in validation": f"{self.data.unknown:.1%}",
            "cut to the limit": sum(self.data.truncated.values()),
            "left out": self.data.left_out,
            "median length in training": float(np.median(self.data.train.lengths)),
            "word vectors": self.vectors.sentence,
        }
        attrs = {
            "kind": self.kind,
            "data": self.text.name,
            "classes": list(self.data.classes),
            "facts": json.dumps(facts),
        }
        return xr.Dataset(variables, attrs=attrs)

    def _batch(self, size: int) -> int:
        return min(size, len(self.data.train))

    def _proxy_batches(self, seed: int) -> LengthBatches:
        return LengthBatches(self.data.train.lengths, self._batch(PROXY_BATCH), seed)

    @property
    def _texts_salient(self) -> int:
        return self.study.salient or READ

    def _salient(self, split: str) -> int:
        return Cells(self.splits[split].first(self._texts_salient).lengths).count

    def _looker(self, split: str, case: str, first: bool) -> Callable[[nn.Module], Look]:
        texts = self.splits[split]
        salient = self._texts_salient if first else 0
        return lambda model: look(model, texts, salient, self._salient(split))


def look(model: nn.Module, texts: Texts, salient: int, salient_cells: int) -> Look:
    """Read the model on texts, in batches of about one length.

    Args:
        model: the classifier or the proxy.
        texts: what it is read on.
        salient: the first texts, whose saliency is read.
        salient_cells: room for their saliency; NaN where it is not read.
    """
    cells = Cells(texts.lengths)
    alpha, lexical = torch.full((2, cells.count), torch.nan)
    delta = torch.full((salient_cells,), torch.nan)
    right, loss = 0, 0.0
    seen_first = min(salient, len(texts)) if isinstance(model, SequenceClassifier) else 0
    for rows in (
        *_by_length(texts, np.arange(seen_first)),
        *_by_length(texts, np.arange(seen_first, len(texts))),
    ):
        batch = texts.batch(rows)
        here = torch.from_numpy(cells.places(rows))
        words = slice(None) if batch.mask is None else batch.mask
        if isinstance(model, SequenceClassifier) and rows[0] < seen_first:
            seen, gradient = model.look_with_saliency(batch.source, batch.mask, batch.label)
            logits, weights, odds = seen.logits, seen.weights, seen.log_odds
            delta[here] = gradient[words].flatten()
        else:
            logits, weights, odds = _look(model, batch)
        right += int(((logits > 0) == (batch.label > 0.5)).sum())
        loss += float(F.binary_cross_entropy_with_logits(logits, batch.label, reduction="sum"))
        sign = (2 * batch.label - 1)[:, None]
        alpha[here] = weights[words].flatten()
        lexical[here] = (sign * odds)[words].flatten()
    return Look(alpha, lexical, delta, right / len(texts), loss / len(texts))


def _look(model: nn.Module, batch: LabelledSequences) -> tuple[Tensor, Tensor, Tensor]:
    """Return logits, attention (NaN for the proxy) and log odds of every position."""
    with torch.no_grad():
        if isinstance(model, ClassProxy):
            logits = model.logits(batch.source, batch.mask)
            odds = model.log_odds_by_word()[batch.source]
            return logits, torch.full_like(odds, torch.nan), odds
        assert isinstance(model, SequenceClassifier)
        seen = model.look(batch.source, batch.mask)
        return seen.logits, seen.weights, seen.log_odds


def _by_length(texts: Texts, rows: np.ndarray) -> list[np.ndarray]:
    """Return batches of some texts of about one length, as many as fit into one pass."""
    if not len(rows):
        return []
    order = rows[np.argsort(texts.lengths[rows], kind="stable")]
    sums = texts.lengths[order].cumsum()
    cuts = np.flatnonzero(np.diff(sums // CELLS_AT_ONCE)) + 1
    return np.split(order, cuts)
