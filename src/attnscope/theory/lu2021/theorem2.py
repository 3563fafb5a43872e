"""Theorem 2 of Lu 2021: training ends up attending to the topic word, and the loss vanishes."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from attnscope.tasks.bags import Bags
from attnscope.theory.arrays import Numbers, float64, word_numbers
from attnscope.theory.lu2021.corollary1 import score_from_norm


def topic_attention(scores: Numbers, bags: Bags, words_at: Numbers) -> np.ndarray:
    """Attention weight exp(s_t) / (exp(s_t) + Z(χ∖t)) of the topic word in every sentence.

    Args:
        scores: s_w of all words, shape ``(..., word)``.
        bags: the sentences.
        words_at: position of the topic word, one for all sentences or one for each. On
            :class:`TopicWords` it is 0.

    Returns:
        Shape ``(..., sentence)``.
    """
    scores = float64(scores)
    ids = bags.ids.numpy()
    position = np.broadcast_to(word_numbers(words_at), len(bags))
    topic = ids[np.arange(len(bags)), position]
    relative = np.exp(scores[..., ids] - scores[..., topic, None])
    if bags.mask is not None:
        relative = np.where(bags.mask.numpy(), relative, 0.0)
    return np.asarray(1 / relative.sum(axis=-1))


def weight_from_score(score: Numbers, m: Numbers) -> np.ndarray:
    """Attention weight of a topic word among m words of score zero, exp(s) / (exp(s) + m).

    >>> weight_from_score([0.0, 6.0], 20).round(4).tolist()
    [0.0476, 0.9528]
    """
    return np.asarray(expit(float64(score) - np.log(float64(m))))


def weight_from_norm(norm: Numbers, m: Numbers) -> np.ndarray:
    """Attention weight of a topic word from the norm of its embedding, by Corollary 1."""
    return weight_from_score(score_from_norm(norm, m), m)
