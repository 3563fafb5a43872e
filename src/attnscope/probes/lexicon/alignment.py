"""Word alignments as sets of links, and how wrong they are.

A link ``(l, t)`` says that source word l and target word t translate each other, counted from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from attnscope.errors import AttnscopeError

Link = tuple[int, int]
Links = AbstractSet[Link]


def alignment_error_rate(
    predicted: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]
) -> float:
    """Alignment error rate over a corpus (Och and Ney 2003); 0 is best.

    AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|), links added up over all pairs. Sure links count as
    possible whether or not ``possible`` has them.

    Args:
        predicted: A, the links of each pair.
        sure: S, the links that must be there.
        possible: P, the links that may be there.

    Raises:
        AttnscopeError: for sequences of different length, or when there is neither a predicted nor
            a sure link.
    """
    if not len(predicted) == len(sure) == len(possible):
        raise AttnscopeError(
            f"there are predicted links of {len(predicted)} pairs, sure ones of {len(sure)} and "
            f"possible ones of {len(possible)}: expected as many."
        )
    found = total = 0
    for links, must, may in zip(predicted, sure, possible, strict=True):
        found += len(links & must) + len(links & (must | may))
        total += len(links) + len(must)
    if not total:
        raise AttnscopeError("there is neither a predicted nor a sure link: expected one at least.")
    return 1 - found / total


@dataclass(frozen=True)
class LinkScore:
    """How links compare with those that people made; shares from 0 to 1.

    Args:
        error: the alignment error rate.
        low: lower end of its 95 % interval, by drawing pairs again.
        high: upper end.
        precision: |A∩P| / |A|.
        recall: |A∩S| / |S|.
        links: |A|.
    """

    error: float
    low: float
    high: float
    precision: float
    recall: float
    links: int


def score_links(
    predicted: Sequence[Links],
    sure: Sequence[Links],
    possible: Sequence[Links],
    *,
    draws: int = 1000,
    seed: int = 0,
) -> LinkScore:
    """Score links, with an interval by the bootstrap over pairs of sentences."""
    error = alignment_error_rate(predicted, sure, possible)
    rows = np.array(
        [
            (len(a & s), len(a & (s | p)), len(a), len(s))
            for a, s, p in zip(predicted, sure, possible, strict=True)
        ],
        dtype=float,
    )
    counts = np.random.default_rng(seed).multinomial(
        len(rows), np.full(len(rows), 1 / len(rows)), size=draws
    )
    drawn = counts @ rows
    total = np.maximum(drawn[:, 2] + drawn[:, 3], 1)
    low, high = np.quantile(1 - (drawn[:, 0] + drawn[:, 1]) / total, (0.025, 0.975))
    in_sure, in_possible, links, must = rows.sum(axis=0)
    return LinkScore(
        error,
        float(low),
        float(high),
        float(in_possible / max(links, 1)),
        float(in_sure / max(must, 1)),
        int(links),
    )


def chance_error_rate(
    lengths: Sequence[tuple[int, int]], sure: Sequence[Links], possible: Sequence[Links]
) -> float:
    """Expected alignment error rate if every target word is linked to a source word at random.

    A link at random is one of the L T of its pair, and there are T: |S|/L of them are expected to
    be sure, and |S∪P|/L possible.

    Args:
        lengths: (L, T) of each pair, words of source and target.
        sure: S.
        possible: P.
    """
    found = total = 0.0
    for (source, target), must, may in zip(lengths, sure, possible, strict=True):
        found += (len(must) + len(must | may)) / max(source, 1)
        total += target + len(must)
    if not total:
        raise AttnscopeError("there is neither a target word nor a sure link: expected one.")
    return 1 - found / total


def best_links(alpha: ArrayLike, null: bool = False) -> frozenset[Link]:
    """Link every target word to the source word that it attends to most.

    Of equal values the first counts. A target word whose row is 0 everywhere, about which nothing
    is known, has no link.

    Args:
        alpha: shape ``(t, l)``.
        null: the last column is a null word; a target word that attends to it most has no link.
            It loses against a source word of equal value.

    Raises:
        AttnscopeError: for an array of another dimension, with NaN, or with negative values.
    """
    table = np.asarray(alpha, dtype=float)
    if table.ndim != 2:
        raise AttnscopeError(f"alpha has the shape {table.shape}: expected (t, l).")
    if np.isnan(table).any() or (table < 0).any():
        raise AttnscopeError("alpha holds NaN or a negative value: expected 0 or more.")
    if not table.size:
        return frozenset()
    best = table.argmax(axis=1)
    linked = table.max(axis=1) > 0
    if null:
        linked &= best < table.shape[1] - 1
    return frozenset((int(best[t]), int(t)) for t in np.flatnonzero(linked))


def word_links(weights: ArrayLike, source: ArrayLike, target: ArrayLike) -> frozenset[Link]:
    """Return the links of words, of weights ``(t, l)`` of pieces of words.

    Every target piece is linked as by :func:`best_links`, and two words are linked where any of
    their pieces are.

    Args:
        weights: 0 or more.
        source: the word of every source piece, -1 for none.
        target: the same for target pieces.

    >>> weights = np.array([[0.1, 0.9, 0.0], [0.6, 0.3, 0.1], [0.2, 0.1, 0.7]])
    >>> sorted(word_links(weights, [0, 0, -1], [0, 1, 1]))
    [(0, 0), (0, 1)]
    """
    of_source, of_target = np.asarray(source), np.asarray(target)
    pairs = ((int(of_source[at]), int(of_target[t])) for at, t in best_links(weights))
    return frozenset(pair for pair in pairs if min(pair) >= 0)


def flipped(links: Links) -> frozenset[Link]:
    """Exchange source and target, for links of a model of the other direction."""
    return frozenset((t, s) for s, t in links)


def diagonal_links(source: int, target: int) -> frozenset[Link]:
    """Link target word t to the source word at the same share of the sentence, ⌊(t + ½) L / T⌋.

    It knows nothing but the lengths: what any aligner must beat.

    Args:
        source: L, words of the source.
        target: T, words of the target.
    """
    if source < 0 or target < 0:
        raise AttnscopeError(f"lengths are {source} and {target}: expected 0 or more.")
    if not source:
        return frozenset()
    return frozenset(((2 * t + 1) * source // (2 * target), t) for t in range(target))
