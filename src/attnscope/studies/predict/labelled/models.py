"""What is trained: the classifier of Snell 2021, and the bag of words with attention of Lu 2021."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.datasets.vectors import word_vectors
from attnscope.models.bag_attention import BagAttention
from attnscope.models.classifiers import FixedLinear
from attnscope.models.sequence_classifier import SequenceClassifier, classifier_loss
from attnscope.tasks.bags import Bags
from attnscope.tasks.keyword import LabelledSequences
from attnscope.tasks.length_batches import passes
from attnscope.tasks.sequence_pairs import PAD
from attnscope.tasks.word_sequences import Texts, WordSequences

SNELL, LU = "Snell 2021", "Lu 2021"
MODELS = (SNELL, LU)
CELLS_AT_ONCE = 2000
STD = 1e-3
"""Standard deviation of Lu's embeddings at the start."""


def made(
    kind: str, data: WordSequences, seed: int, *, embedding: int, hidden: int, glove: str
) -> nn.Module:
    """Return a model before training."""
    words = len(data.words)
    if kind == LU:
        dice = torch.Generator().manual_seed(seed)
        reader = FixedLinear(embedding, 2, generator=dice)
        return BagAttention(words, embedding, reader, std=STD, generator=dice)
    torch.manual_seed(seed)
    model = SequenceClassifier(words, embedding=embedding, hidden=hidden, attention_hidden=hidden)
    vectors = word_vectors(glove, data.words, embedding)
    with torch.no_grad():
        known = torch.from_numpy(vectors.numbers)
        model.embedding.weight[known] = torch.from_numpy(vectors.values)
    return model


def loss_of(kind: str, texts: Texts) -> Callable[[nn.Module, np.ndarray], Tensor]:
    """Return the loss on training texts of some numbers."""

    def loss(model: nn.Module, rows: np.ndarray) -> Tensor:
        batch = texts.batch(rows)
        if kind == SNELL:
            assert isinstance(model, SequenceClassifier)
            return classifier_loss(model, batch)
        assert isinstance(model, BagAttention)
        return F.cross_entropy(model.forward_padded(_bags(model, batch)), batch.label.long())

    return loss


@torch.no_grad()
def look(model: nn.Module, texts: Texts, count: int, width: int) -> tuple[Tensor, float]:
    """Return attention on texts, ``(count, width)`` with NaN where no word is, and accuracy."""
    found = torch.full((count, width), torch.nan)
    lengths, right = texts.lengths, 0
    for rows in passes(np.argsort(lengths, kind="stable"), lengths, CELLS_AT_ONCE):
        batch = texts.batch(rows)
        if isinstance(model, SequenceClassifier):
            seen = model.evaluate(batch.source, batch.mask)
            weights, positive = seen.weights, seen.logits > 0
        else:
            assert isinstance(model, BagAttention)
            bags = _bags(model, batch)
            weights = model.attention(bags)
            logits = model.forward_padded(bags)
            positive = logits[:, 1] > logits[:, 0]
        here = batch.source != PAD
        wide = torch.full((len(rows), width), torch.nan)
        wide[:, : weights.shape[1]] = torch.where(here, weights, torch.nan)
        found[torch.from_numpy(np.asarray(rows))] = wide
        right += int((positive == (batch.label > 0.5)).sum())
    return found, right / len(texts)


def _bags(model: BagAttention, batch: LabelledSequences) -> Bags:
    return Bags(batch.source, batch.label.long(), len(model.scores()), batch.mask)
