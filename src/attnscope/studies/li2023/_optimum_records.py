"""What is read off the runs of ``li2023.optimum``: ratios of attention between words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.engines import Final, Linear, Observable, Record
from attnscope.models.topic_objective import PopulationObjective

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum import Optimum

RATIOS = ("alpha", "beta", "gamma", "mask_ratio")


def ratios(scores: Tensor, topic_of: np.ndarray) -> Tensor:
    """Return α, β, γ and μ of every word that is not [MASK], shape ``(4, word)``.

    They are means of exp(score) over the other words of the topic, at the word itself, over the
    whole topic and at [MASK], each over the mean over words of other topics.

    Args:
        scores: logits of attention S[key, query] / √d_a, [MASK] first.
        topic_of: topic of every word, -1 for [MASK].
    """
    weight = scores[:, 1:].exp()
    topic = torch.from_numpy(topic_of)
    same = (topic[:, None] == topic)[:, 1:].to(weight)
    itself = torch.eye(len(topic)).to(weight)[:, 1:]
    other = 1 - same
    other[0] = 0
    far = (weight * other).sum(0) / other.sum(0)
    own = (weight * itself).sum(0)
    whole = (weight * same).sum(0)
    size = same.sum(0)
    return torch.stack([(whole - own) / (size - 1), own, whole / size, weight[0]]) / far


def records(study: Optimum, loss: PopulationObjective, topic_of: np.ndarray) -> list[Record]:
    """Return the ratios along the run, and attention between words at its start and end."""

    def means(model: nn.Module) -> Tensor:
        scores = model.score_matrix() / model.attention_dim**0.5  # type: ignore[operator]
        return ratios(scores, topic_of).mean(1)

    def spread(model: nn.Module) -> Tensor:
        scores = model.score_matrix() / model.attention_dim**0.5  # type: ignore[operator]
        gamma = ratios(scores, topic_of)[2]
        return gamma.std() / gamma.mean()

    curve = (
        Observable("ratios", means, ("ratio",), meaning="α, β, γ, μ: means over words"),
        Observable("spread", spread, meaning="standard deviation of γ over words, over its mean"),
        Observable("loss", lambda model: loss(model), meaning="squared loss where a word is seen"),  # type: ignore[arg-type]
    )
    matrix = Observable(
        "attention",
        lambda model: model.attention_by_word(),  # type: ignore[operator]
        ("key", "query"),
        meaning="softmax of the scores over keys, as in a document that holds every word once",
    )
    return [Record(curve, Linear(study.points)), Record((matrix,), Final(), "end")]
