r"""Attention logits that words receive in context: the score of Lu 2021 on any model.

In Lu 2021 a word has one score :math:`s_w`, its attention logit before the softmax. In a model with
many queries a word has a logit for each of them, and softmax forgets a constant for each query.
What is left, and can be compared over training, is how far the word's logit stands above those of
the other words that the same query sees:

.. math:: s_w = \operatorname{mean}_{q,\, k:\, x_k = w}
    \Bigl[\ln a_{qk} - \operatorname{mean}_{k':\, x_{k'} \ne w} \ln a_{qk'}\Bigr].

In the model of Lu 2021 itself, with one query, this is :math:`s_w` minus the mean score of the
other words in the sentence, averaged over the sentences with w in them.
"""

from __future__ import annotations

import numpy as np

from attnscope.errors import AttnscopeError


def word_scores(
    weights: np.ndarray,
    ids: np.ndarray,
    words: np.ndarray,
    visible: np.ndarray,
    asking: np.ndarray | None = None,
) -> np.ndarray:
    """Return the scores of words, shape ``(head, word)``; NaN for a word that is not there.

    Args:
        weights: attention, shape ``(row, head, query, key)``.
        ids: words at the keys, shape ``(row, key)``.
        words: numbers of the words that are asked for.
        visible: where a query may look, shape ``(row, query, key)``. Queries that see nothing but
            the word do not count.
        asking: which queries count, shape ``(row, query)``; all unless given.

    Raises:
        AttnscopeError: ids do not fit the keys.
    """
    rows, heads, _, keys = weights.shape
    if ids.shape != (rows, keys):
        raise AttnscopeError(
            f"ids of shape {ids.shape} for weights of shape {weights.shape}: expected "
            f"({rows}, {keys})."
        )
    logs = np.log(np.maximum(weights, np.finfo(weights.dtype).tiny))
    if asking is not None:
        visible = visible & asking[..., None]
    scores = np.full((heads, len(words)), np.nan, dtype=weights.dtype)
    for number, word in enumerate(words):
        here = (ids == word)[:, None, :] & visible
        other = visible & ~here
        known = here.any(axis=-1) & other.any(axis=-1)
        if not known.any():
            continue
        base = (logs * other[:, None]).sum(-1) / np.maximum(other.sum(-1), 1)[:, None]
        pairs = (here & known[..., None])[:, None]
        scores[:, number] = ((logs - base[..., None]) * pairs).sum((0, 2, 3)) / pairs.sum()
    return scores
