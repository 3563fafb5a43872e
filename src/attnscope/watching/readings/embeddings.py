"""Chosen words during training: how long their embeddings are, and what attention they get.

In Lu 2021 the two grow together; see :mod:`attnscope.probes.lexicon.word_scores` for what a score
is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.word_scores import word_scores
from attnscope.watching.moment import Moment, Reading
from attnscope.watching.probe import input_embedding
from attnscope.watching.readings.offer import Layer, Offer, WatchedModel, array, layers, stacked
from attnscope.watching.undisturbed import bare

WordNumbers = Sequence[int] | Mapping[str, int]


def offers(watched: WatchedModel) -> list[Offer]:
    """Return the readings of this family."""
    words = list(watched.words.values())
    listed = ", ".join(watched.words)
    no_words = "" if words else "words: words=[17, 42] or words={'good': 17}"
    table = _table(watched.model)
    no_table = "" if table is not None else "an nn.Embedding, and none was found in the model"

    def norms(_: Moment) -> Tensor:
        assert table is not None
        rows = table.detach()[torch.tensor(words, device=table.device)]
        return torch.linalg.vector_norm(rows.float() if rows.itemsize < 4 else rows, dim=-1)

    def scores(moment: Moment) -> Tensor | None:
        assert moment.evaluation.ids is not None
        ids = array(moment.evaluation.ids)
        return stacked([_scores(layer, ids, words) for layer in layers(moment.evaluation)])

    norm = Reading(
        "embedding_norm",
        norms,
        ("word",),
        meaning=f"norm of the input embeddings of the words {listed}",
    )
    score = Reading(
        "word_score",
        scores,
        ("layer", "head", "word"),
        frozenset({"attention", "probe"}),
        "nats",
        "attention logit of a word minus the mean logit of the other words that the query sees, "
        f"mean over queries; words {listed}",
    )
    return [
        Offer(norm, True, no_words or no_table),
        Offer(score, True, no_words or watched.lacks_words),
    ]


def _scores(layer: Layer | None, ids: np.ndarray, words: Sequence[int]) -> np.ndarray | None:
    if layer is None:
        return None
    if ids.shape != (len(layer.weights), layer.weights.shape[-1]):
        return np.full((layer.weights.shape[1], len(words)), np.nan)
    return word_scores(layer.weights, ids, np.asarray(words), layer.visible, layer.asking)


def _table(model: nn.Module) -> Tensor | None:
    table = getattr(input_embedding(bare(model)), "weight", None)
    return table if isinstance(table, Tensor) and table.ndim == 2 else None


def read_words(words: WordNumbers, model: nn.Module) -> dict[str, int]:
    """Return word ids by name.

    Raises:
        AttnscopeError: a word has no number, or the model has no word of that number.
    """
    given = dict(words) if isinstance(words, Mapping) else {str(word): word for word in words}
    table = _table(model)
    for name, word in given.items():
        if isinstance(word, bool) or not isinstance(word, int | np.integer):
            raise AttnscopeError(
                f"words: {word!r} is no word number: expected numbers, or names with their numbers "
                "such as {'good': 17}."
            )
        if table is not None and not 0 <= word < len(table):
            raise AttnscopeError(
                f"words: '{name}' has the number {word}: expected 0 to {len(table) - 1}, the rows "
                "of the model's input embedding."
            )
    return {str(name): int(word) for name, word in given.items()}
