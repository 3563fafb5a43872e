"""What the agreement study trains and reads on labelled text: the models of section 2.4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import xarray as xr
from torch import Tensor, nn

from attnscope.datasets.vectors import VocabularyVectors, word_vectors
from attnscope.errors import AttnscopeError
from attnscope.models.class_proxy import ClassProxy, class_proxy_loss
from attnscope.models.sequence_classifier import SequenceClassifier, classifier_loss
from attnscope.studies.snell2021.agreement.setup import (
    PROXY_WIDTH,
    Numbers,
    Pass,
    Setup,
    SplitReading,
    put_together,
)
from attnscope.tasks.length_batches import passes
from attnscope.tasks.sequence_pairs import PAD
from attnscope.tasks.word_sequences import Texts, WordSequences, word_sequences

READ = 500
"""Training texts that are read at most, and texts whose saliency is read unless more are wanted:
reading costs as much as training on a third as many texts."""
CELLS_AT_ONCE = 2000
"""Positions that are read in one pass."""


def read_texts(model: nn.Module, texts: Texts, salient: int = 0, room: int = 0) -> SplitReading:
    """Read the classifier or the proxy on texts, see :attr:`Setup.look`."""
    return put_together(_passes(model, texts, salient), texts.lengths, room, len(texts))


def _passes(model: nn.Module, texts: Texts, salient: int) -> Iterator[Pass]:
    first = min(salient, len(texts)) if isinstance(model, SequenceClassifier) else 0
    for numbers in (np.arange(first), np.arange(first, len(texts))):
        order = numbers[np.argsort(texts.lengths[numbers], kind="stable")]
        for rows in passes(order, texts.lengths, CELLS_AT_ONCE):
            batch = texts.batch(rows)
            here = batch.source != PAD
            alpha = delta = None
            if isinstance(model, ClassProxy):
                with torch.no_grad():
                    logits = model.logits(batch.source, batch.mask)
                    odds = model.log_odds_by_word()[batch.source]
            else:
                assert isinstance(model, SequenceClassifier)
                if rows[0] < first:
                    seen, saliency = model.evaluate_with_saliency(
                        batch.source, batch.mask, batch.label
                    )
                    delta = saliency[here]
                else:
                    seen = model.evaluate(batch.source, batch.mask)
                logits, alpha, odds = seen.logits, seen.weights[here], seen.log_odds
            loss = F.binary_cross_entropy_with_logits(logits, batch.label, reduction="sum")
            right = int(((logits > 0) == (batch.label > 0.5)).sum())
            lexical = ((2 * batch.label - 1)[:, None] * odds)[here]
            yield rows, right, float(loss), (alpha, lexical, delta)


class ClassificationSetup(Setup):
    """Labelled text and the models of section 2.4."""

    kind = "labelled"
    paper = {"steps": 4000, "batch": 32, "embedding": 300, "proxy_epochs": 60}
    salient = READ
    early, every = (10, 50, 100, 150, 200), 250
    proxy_rates = {"": 1.5e-4} | dict.fromkeys(("imdb", "yelp", "amazon"), 5e-5)
    look = staticmethod(read_texts)

    @cached_property
    def data(self) -> WordSequences:
        """The texts as words."""
        study, two = self.study, self.study.classes
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
    def vectors(self) -> VocabularyVectors:
        """Where word embeddings start."""
        return word_vectors(self.study.glove, self.data.words, self.study.wanted("embedding"))

    @cached_property
    def splits(self) -> dict[str, Texts]:
        """Validation texts, and training texts for Table 7."""
        order = np.random.default_rng(1).permutation(len(self.data.train))
        sample = self.data.train.rows(order[: min(READ, len(self.data.dev))])
        return {"dev": self.data.dev, "train": sample}

    @property
    def facts(self) -> dict[str, object]:
        """What is known of the data, and where embeddings start."""
        return {**self.data.facts, "word vectors": self.vectors.sentence}

    def lengths(self, case: str) -> Numbers:
        """Return the lengths of training texts."""
        return self.data.train.lengths

    def model(self, case: str, seed: int) -> nn.Module:
        """Return the model of a case before training."""
        torch.manual_seed(seed)
        words = len(self.data.words)
        if case == "proxy":
            return ClassProxy(words, PROXY_WIDTH)
        model = SequenceClassifier(
            words,
            embedding=self.study.wanted("embedding"),
            hidden=self.study.hidden,
            attention_hidden=self.study.hidden,
            attention="uniform" if case == "uniform" else "learned",
            trained="attention" if case == "frozen" else "all",
        )
        with torch.no_grad():
            known = torch.from_numpy(self.vectors.numbers)
            model.embedding.weight[known] = torch.from_numpy(self.vectors.values)
        return model

    def objective(self, case: str) -> Callable[[Any, Numbers], Tensor]:
        """Return the loss on training texts of some numbers."""
        texts = self.data.train
        loss: Callable[..., Tensor] = class_proxy_loss if case == "proxy" else classifier_loss
        return lambda model, rows: loss(model, texts.batch(rows))

    def truth(self) -> xr.Dataset:
        """Return the texts that are read, word by word, and the names of the classes."""
        return super().truth().assign_attrs(classes=list(self.data.classes))
