"""Assumption 1 of Lu 2021: non-topic words hardly move while topic words do. Measured.

How little scores can move is settled beforehand: softmax does not see a common shift, so eq (4)
summed over all words is zero, and what topic words gain the others lose. If all topic words gain,
the ratio of mean |Δs| is the number of topic words over the number of non-topic words at least:
8/5000 in the paper's setting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64


@dataclass(frozen=True)
class Movement:
    """How far non-topic words moved, over how far topic words moved on average.

    Args:
        score_mean: mean of |Δs| over non-topic words, over its mean over topic words.
        score_max: largest |Δs| of a non-topic word, over the mean over topic words.
        embedding_mean: the same mean of ‖Δv‖.
        embedding_max: the same maximum of ‖Δv‖.
    """

    score_mean: float
    score_max: float
    embedding_mean: float
    embedding_max: float


def movement(
    initial_scores: Numbers,
    initial_embeddings: Numbers,
    scores: Numbers,
    embeddings: Numbers,
    is_topic: Numbers,
) -> Movement:
    """Compare the way of the non-topic words with the way of the topic words.

    Args:
        initial_scores: s_w of all words at the start, shape ``(word,)``.
        initial_embeddings: v_w at the start, shape ``(word, dim)``.
        scores: s_w later.
        embeddings: v_w later.
        is_topic: true for topic words, shape ``(word,)``.

    Raises:
        AttnscopeError: one of the two kinds has no word, or no topic word has moved.
    """
    topic = float64(is_topic) != 0
    if topic.all() or not topic.any():
        raise AttnscopeError(
            f"is_topic marks {int(topic.sum())} of {topic.size} words: expected both kinds."
        )
    score = np.abs(float64(scores) - float64(initial_scores))
    embedding = np.linalg.norm(float64(embeddings) - float64(initial_embeddings), axis=-1)
    return Movement(*_ratios(score, topic, "score"), *_ratios(embedding, topic, "embedding"))


def _ratios(moved: np.ndarray, topic: np.ndarray, what: str) -> tuple[float, float]:
    scale = float(moved[topic].mean())
    if not scale > 0:
        raise AttnscopeError(f"no topic word's {what} has moved: expected a state after training.")
    others = moved[~topic]
    return float(others.mean()) / scale, float(others.max()) / scale
