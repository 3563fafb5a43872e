"""How well the top words of a topic go together in text: NPMI in a sliding window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

WINDOW = 10
"""Words in a window, the setting of C_NPMI (Röder, Both and Hinneburg, WSDM 2015)."""

_EPSILON = 1e-12


def npmi(
    top: Sequence[Sequence[int]] | NDArray[np.intp],
    documents: Iterable[NDArray[np.int32]],
    window: int = WINDOW,
) -> NDArray[np.float64]:
    """Return the mean normalised pointwise mutual information of each topic's top words.

    ``NPMI(a, b) = log(p(a,b) / (p(a) p(b))) / -log p(a,b)`` (Bouma 2009), with ``p`` the share of
    windows that hold the words, each once, averaged over all pairs of a topic's top words. It is 1
    for words that only occur together, 0 for independent ones, and -1 for words that never meet;
    1e-12 is added to ``p(a,b)``, as Röder et al. do. A document shorter than the window is one
    window. Memory depends on the number of top words alone.

    Args:
        top: the numbers of the top words of each topic.
        documents: word ids in their order, stop words left out; read once.
        window: words in a window.
    """
    marked = np.unique(np.concatenate([np.asarray(row, dtype=np.int64) for row in top]))
    single = np.zeros(len(marked))
    joint = np.zeros((len(marked), len(marked)))
    windows = 0
    for document in documents:
        if not len(document):
            continue
        seen = _windows(document, marked, window)
        windows += seen.shape[0]
        # Counts of ones: a window that holds a word twice holds it.
        single += np.asarray(seen.sum(axis=0)).ravel()
        pairs = (seen.T @ seen).tocoo()
        joint[pairs.row, pairs.col] += pairs.data
    return np.array([_mean(np.searchsorted(marked, row), single, joint, windows) for row in top])


def _windows(document: NDArray[np.int32], marked: NDArray[np.int64], window: int) -> csr_matrix:
    """Return which marked words each window holds, as ones."""
    count = max(1, len(document) - window + 1)
    column = np.searchsorted(marked, document)
    column[column == len(marked)] = 0
    position = np.flatnonzero(marked[column] == document)
    column = column[position]
    # The word at position p is in the windows that begin at p - window + 1 to p.
    rows = (position[:, None] - np.arange(window)).ravel()
    columns = np.repeat(column, window)
    inside = (rows >= 0) & (rows < count)
    # One number for a cell, so that doubles are found by sorting once.
    cells = np.unique(rows[inside] * len(marked) + columns[inside])
    return csr_matrix(
        (np.ones(len(cells)), (cells // len(marked), cells % len(marked))),
        shape=(count, len(marked)),
    )


def _mean(
    row: NDArray[np.intp], single: NDArray[np.float64], joint: NDArray[np.float64], windows: int
) -> float:
    left, right = np.triu_indices(len(row), 1)
    if not len(left) or not windows:
        return float("nan")
    both = joint[row[left], row[right]] / windows + _EPSILON
    apart = single[row[left]] * single[row[right]] / windows**2
    # A top word of the fitted corpus occurs in it; with another corpus it may not.
    known = apart > 0
    values = np.full(len(left), -1.0)
    values[known] = np.log(both[known] / apart[known]) / -np.log(both[known])
    return float(values.mean())
