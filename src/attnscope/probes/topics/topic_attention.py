"""Attention between words of one topic and of different topics (Li 2023, section 6, App. G.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError

UNIT = 100
"""Weights are brought to documents of so many positions."""


@dataclass(frozen=True, eq=False)
class TopicAttention:
    """Mean attention of three kinds of pairs; NaN where there is no such pair.

    Args:
        same_word: of two positions with the same word, a position and itself among them.
        same_topic: of two different words of one topic.
        different_topic: of two words of different topics.
        pairs: how many pairs of each kind there are, in this order.
    """

    same_word: np.ndarray
    same_topic: np.ndarray
    different_topic: np.ndarray
    pairs: tuple[int, int, int]

    @property
    def ratio(self) -> np.ndarray:
        """Same topic, different words, over different topics; 1 without topic structure."""
        return self.same_topic / self.different_topic

    @property
    def kinds(self) -> np.ndarray:
        """The three means along a last axis."""
        return np.stack([self.same_word, self.same_topic, self.different_topic], axis=-1)


def topic_attention(
    weights: np.ndarray,
    ids: np.ndarray,
    topics: np.ndarray,
    lengths: np.ndarray | None = None,
) -> TopicAttention:
    """Average attention weights over all pairs of positions, by what stands there.

    A weight in a long document is smaller than one in a short document, whatever the words. So each
    weight is multiplied by the document's length over 100 before the average (App. G.3): uniform
    attention is 0.01 for every kind of pair, at all lengths.

    Args:
        weights: shape ``(document, ..., key, query)``; axes in between, such as layer and head, are
            kept. Attention written as (query, key), as most libraries return it, has to be
            transposed first. Weights of positions that are left out may be anything finite.
        ids: words, shape ``(document, position)``.
        topics: topic of each position, same shape. Positions with -1 are left out, as key and as
            query: padding, special tokens, words without a topic.
        lengths: positions that each document's weights are spread over, shape ``(document,)``; all
            that the array has unless given.

    Returns:
        Means of the shape of the axes in between.

    Raises:
        AttnscopeError: shapes do not fit.
    """
    weights, ids, topics = (np.asarray(array) for array in (weights, ids, topics))
    if ids.ndim != 2 or topics.shape != ids.shape:
        raise AttnscopeError(
            f"ids of shape {ids.shape} and topics of shape {topics.shape}: expected both as "
            "(document, position)."
        )
    documents, positions = ids.shape
    if weights.ndim < 3 or (len(weights), *weights.shape[-2:]) != (
        documents,
        positions,
        positions,
    ):
        raise AttnscopeError(
            f"weights of shape {weights.shape} for {documents} documents of {positions} positions: "
            f"expected ({documents}, ..., {positions}, {positions}), keys before queries."
        )
    lengths = np.full(documents, positions) if lengths is None else np.asarray(lengths)
    if lengths.shape != (documents,):
        raise AttnscopeError(
            f"lengths of shape {lengths.shape}: expected one for each of {documents} documents."
        )
    known = topics >= 0
    pair = known[:, :, None] & known[:, None, :]
    word = pair & (ids[:, :, None] == ids[:, None, :])
    topic = pair & (topics[:, :, None] == topics[:, None, :]) & ~word
    kinds = (word, topic, pair & ~topic & ~word)
    counts = [int(kind.sum()) for kind in kinds]
    scale = lengths / UNIT
    means = [
        np.asarray(
            np.einsum("n...ij,nij->...", weights, kind * scale[:, None, None])
            / (count if count else np.nan)
        )
        for kind, count in zip(kinds, counts, strict=True)
    ]
    return TopicAttention(means[0], means[1], means[2], (counts[0], counts[1], counts[2]))


def attention_ratios(scores: Tensor, topic_of: np.ndarray) -> Tensor:
    """Return α, β, γ and μ of every word that is not [MASK], shape ``(4, word)``.

    They are means of exp(score) over the other words of the topic, at the word itself, over the
    whole topic and at [MASK], each over the mean over words of other topics.

    Args:
        scores: logits of attention, shape ``(key, query)``, [MASK] first.
        topic_of: topic of every word, -1 for [MASK].
    """
    weight = scores[:, 1:].exp()
    topic = torch.from_numpy(topic_of)
    same = (topic[:, None] == topic)[:, 1:].to(weight)
    itself = torch.eye(len(topic)).to(weight)[:, 1:]
    other = 1 - same
    other[0] = 0
    far = (weight * other).sum(0) / other.sum(0)
    own, whole, size = (weight * itself).sum(0), (weight * same).sum(0), same.sum(0)
    return torch.stack([(whole - own) / (size - 1), own, whole / size, weight[0]]) / far


def main_topic_factor(
    ids: np.ndarray, topics: np.ndarray, lengths: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Return a reading of how [MASK] weighs words of the document's most frequent topic.

    The logarithms of its weights are fitted as document + word + β [word of the main topic], and
    the reading is exp(β). In a first layer they are document + word exactly, so β = 0: words that
    everyone attends to, whatever the document, do not count.

    Args:
        ids: words, shape ``(document, position)``.
        topics: topic of each position, same shape; -1 for [MASK] and padding.
        lengths: positions of each document, shape ``(document,)``.

    Returns:
        A function of weights ``(document, layer, head, key, query)`` to factors ``(layer, head)``.
    """
    masked = (topics < 0) & (np.arange(topics.shape[1]) < lengths[:, None])
    main = np.array([np.bincount(row[row >= 0]).argmax() for row in topics])
    row, key = np.nonzero((topics >= 0) & masked.any(axis=1, keepdims=True))
    query = masked.argmax(axis=1)[row]
    columns = (
        np.eye(len(topics))[row],
        np.eye(ids.max() + 1)[ids[row, key]],
        np.equal(topics[row, key], main[row]).reshape(-1, 1),
    )
    fit = np.linalg.pinv(np.concatenate(columns, axis=1))[-1]

    def read(weights: np.ndarray) -> np.ndarray:
        logs = np.log(np.maximum(weights[row, :, :, key, query], np.finfo(np.float32).tiny))
        return np.asarray(np.exp(np.einsum("r,rlh->lh", fit, logs)))

    return read
