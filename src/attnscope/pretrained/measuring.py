"""Topics in the attention and the vectors of a language model, document by document.

Attention is reduced to sums over pairs of words inside the forward pass, layer by layer: no more
than one layer's weights are held at a time, and a document leaves a few kilobytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.pretrained.language_model import Encoded, LanguageModel
from attnscope.pretrained.pieces import Words, find_words
from attnscope.pretrained.plan import SHUFFLES, MeasurementPlan
from attnscope.probes.topics.topic_attention import UNIT
from attnscope.probes.topics.topic_pairs import (
    DISTANCES,
    KINDS,
    cosines,
    distance_bins,
    pair_kinds,
    pair_sums,
    same_and_different,
)
from attnscope.watching.points import find


@dataclass(frozen=True, eq=False)
class DocumentSums:
    """What one document adds; a label is one way to give words topics (:class:`TopicLabels`).

    Args:
        attention: attention times the number of positions that the query could see over 100,
            summed over pairs of words, shape ``(label, kind, layer, head)``.
        pairs: number of these pairs, ``(label, kind, layer)``: where attention is causal, a query
            sees no word after it.
        by_distance: the same averaged over layers and heads, ``(label, kind, bin)``, kinds "same
            topic" and "different topics" alone.
        distance_pairs: number of pairs, averaged over layers, same shape.
        shuffled: attention averaged over layers and heads with topics shuffled among words,
            ``(label, shuffle, kind)``, the same two kinds.
        shuffled_pairs: number of pairs, averaged over layers, same shape.
        vectors: cosines and dot products, summed over pairs, ``(label, kind, depth, measure)``;
            depth 0 are the vectors of pieces before any layer, then come the hidden states.
        vector_pairs: number of pairs, ``(label, kind)``.
        words: number of words with a topic.
        positions: number of positions that were read.
    """

    attention: np.ndarray
    pairs: np.ndarray
    by_distance: np.ndarray
    distance_pairs: np.ndarray
    shuffled: np.ndarray
    shuffled_pairs: np.ndarray
    vectors: np.ndarray
    vector_pairs: np.ndarray
    words: int
    positions: int


def measure(
    language_model: LanguageModel,
    documents: Iterable[str],
    plan: MeasurementPlan,
    *,
    length: int = 256,
    batch: int = 8,
) -> Iterator[DocumentSums]:
    """Read documents with a model and yield the sums of each, in their order.

    Args:
        language_model: the model.
        documents: texts; of each the beginning is read.
        plan: words and topics.
        length: positions of a document that are read, special tokens included.
        batch: documents that are read at a time.

    Raises:
        AttnscopeError: the model shows no attention.
    """
    rest = iter(documents)
    while texts := list(islice(rest, batch)):
        yield from measure_batch(language_model, texts, plan, length)


def measure_batch(
    language_model: LanguageModel, texts: Sequence[str], plan: MeasurementPlan, length: int
) -> list[DocumentSums]:
    """Read a few documents in one forward pass; see :func:`measure`.

    Sums are made where the model is, and come back to the CPU.
    """
    encoded = language_model.encode(texts, length)
    place = plan.numbers
    items = [
        _Document(find_words(text, where, place, whole), place, plan, language_model.device)
        for text, where, whole in zip(encoded.texts, encoded.places, encoded.complete, strict=True)
    ]

    def keep(weights: Tensor) -> None:
        for row, item in enumerate(items):
            item.add_layer(weights[row])

    output = attend(language_model, encoded, keep)
    hidden = list(language_model.hidden(output)) if language_model.hidden is not None else []
    table = language_model.embeddings
    for row, item in enumerate(items):
        pieces = item.words.pieces
        ids = encoded.ids[row, pieces].to(language_model.device)
        item.add_vectors([table[ids], *(layer[row, item.pieces] for layer in hidden)])
    return [
        item.sums(sum(end > begin for begin, end in where))
        for item, where in zip(items, encoded.places, strict=True)
    ]


def attend(language_model: LanguageModel, encoded: Encoded, keep: Callable[[Tensor], None]) -> Any:
    """Run a model and hand on the weights of every layer, ``(row, head, query, key)``.

    Weights are taken where the model computes them, under any implementation of attention. A model
    that has no such place is asked to return them.

    Raises:
        AttnscopeError: it returns none; the sentence says which implementation is active.
    """
    points = find(language_model.model, language_model.attention)
    seen = 0

    def hear(weights: Tensor) -> None:
        nonlocal seen
        seen += 1
        if weights.ndim != 4:
            raise AttnscopeError(_silent(language_model))
        keep(weights)

    with ExitStack() as stack:
        stack.enter_context(_evaluating(language_model.model))
        for point in points:
            stack.callback(point.attach(hear).remove)
        output = language_model.run(encoded) if points else _asked(language_model, encoded)
    if not points:
        for weights in _returned(output):
            hear(weights)
    if not seen:
        raise AttnscopeError(_silent(language_model))
    return output


def _asked(language_model: LanguageModel, encoded: Encoded) -> Any:
    options = {**(language_model.options or {}), "output_attentions": True}
    asked = replace(language_model, options=options)
    try:
        return asked.run(encoded)
    except TypeError as error:
        raise AttnscopeError(_silent(language_model)) from error


def _returned(output: Any) -> list[Tensor]:
    layers: list[Tensor] = []
    for name in ("attentions", "encoder_attentions", "decoder_attentions"):
        layers += [each for each in getattr(output, name, None) or () if each is not None]
    return layers


def _silent(language_model: LanguageModel) -> str:
    config = getattr(language_model.model, "config", None)
    active = getattr(config, "_attn_implementation", None)
    kind = type(language_model.model).__name__
    if active is None:
        return (
            f"'{language_model.name}' ({kind}) shows no attention: expected "
            "LanguageModel(attention=...) with the path of the modules that compute it, such as "
            "'blocks.*.attn', or a function of the model that returns the weights."
        )
    return (
        f"'{language_model.name}' ({kind}) returns no attention; its active implementation is "
        f"'{active}'. Expected a model that can be loaded with attn_implementation='eager' and "
        "returns weights for output_attentions=True."
    )


@contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


class _Document:
    """The pairs of one document, and the sums over them so far."""

    def __init__(
        self, words: Words, place: dict[str, int], plan: MeasurementPlan, device: torch.device
    ) -> None:
        self.words = words
        numbers = np.array([place[word] for word in words.words], dtype=np.int64)
        count, labels = len(numbers), plan.labels
        kinds = np.stack(
            [pair_kinds(numbers, each.topics[numbers], each.cooccurring) for each in labels]
        )
        near = distance_bins(words.first) == np.arange(len(DISTANCES))[:, None, None]
        shuffled = np.stack(
            [
                same_and_different(numbers, each.topics[each.shuffles[:, numbers]]).swapaxes(0, 1)
                for each in labels
            ]
        )
        self.kinds = _flat(kinds).to(device)
        self.near = _flat(kinds[:, :2, None] & near).to(device)
        self.shuffled = _flat(shuffled).to(device)
        self.labels = len(labels)
        self.pieces = torch.from_numpy(words.pieces).to(device)
        self.pooling = torch.from_numpy(words.pooling).to(device)
        self.split = len(words.pieces) > count
        self.layers: list[Tensor] = []
        self.counts: list[Tensor] = []
        # Of attention averaged over heads, and of what was visible: sums over all layers.
        self.overall = torch.zeros(2, count, count, device=device)
        self.vectors = torch.empty(0)

    def add_layer(self, weights: Tensor) -> None:
        """Add up the weights of a layer, ``(head, query, key)``.

        A query spreads its weights over what it can see. What no head of the layer looks at, not by
        the smallest number, it cannot see: padding, and what comes after it if attention is causal.
        """
        rows = weights[:, self.pieces].float()
        seen = (rows > 0).any(dim=0).float()
        values = rows[:, :, self.pieces] * (seen.sum(dim=-1, keepdim=True) / UNIT)
        visible = seen[:, self.pieces]
        if self.split:
            # A word that is seen in part is not seen.
            visible = (self.pooling @ visible @ self.pooling.T > 1 - 1e-5).float()
            values = self.pooling @ values @ self.pooling.T * visible
        self.layers.append(pair_sums(values, self.kinds))
        self.counts.append(pair_sums(visible, self.kinds))
        self.overall += torch.stack([values.mean(dim=0), visible])

    def add_vectors(self, depths: Sequence[Tensor]) -> None:
        """Add up cosines and dot products of the words' vectors, ``(piece, width)`` a depth."""
        # One by one: vectors before the first layer may be narrower than the others, as in ALBERT.
        values = [cosines(self.pooling @ each.float()) for each in depths]
        self.vectors = pair_sums(torch.stack(values), self.kinds)

    def sums(self, positions: int) -> DocumentSums:
        """Return what the document adds."""
        layers, heads = len(self.layers), max(layer.shape[-1] for layer in self.layers)
        attention = torch.full((len(self.kinds), layers, heads), torch.nan)
        for number, layer in enumerate(self.layers):
            attention[:, number, : layer.shape[-1]] = layer.cpu()
        first = (self.labels, len(KINDS))
        near = pair_sums(self.overall / layers, self.near).cpu().numpy()
        near = near.reshape(self.labels, 2, len(DISTANCES), 2)
        shuffled = pair_sums(self.overall / layers, self.shuffled).cpu().numpy()
        shuffled = shuffled.reshape(self.labels, SHUFFLES, 2, 2)
        return DocumentSums(
            attention=attention.reshape(*first, layers, heads).numpy(),
            pairs=torch.stack(self.counts, dim=-1).cpu().reshape(*first, layers).numpy(),
            by_distance=near[..., 0],
            distance_pairs=near[..., 1],
            shuffled=shuffled[..., 0],
            shuffled_pairs=shuffled[..., 1],
            vectors=self.vectors.cpu().reshape(*first, *self.vectors.shape[1:]).numpy(),
            vector_pairs=self.kinds.sum(dim=(1, 2)).cpu().reshape(first).numpy(),
            words=len(self.words.words),
            positions=positions,
        )


def _flat(masks: np.ndarray) -> Tensor:
    shape = masks.shape
    flat = masks.reshape(math.prod(shape[:-2]), *shape[-2:])
    return torch.from_numpy(flat.astype(np.float32))
