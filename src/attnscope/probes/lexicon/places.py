"""Does a corpus tell where in its source a target word comes from? Two halves of it, compared.

Attention follows what single words know (Snell 2021, section 3.3): a table of what goes with what,
C (eq 16), read off each half of the pairs, names for a target word the source word that makes it
likeliest (eq 17 to 19). If words tell places, both halves name the same one. If every source word
of a pair goes equally with its target words, as in permutations, they agree as often as chance
would, 1/L, with ties broken at random. Pairs put together anew show what is left by counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.agreement import mean_agreement
from attnscope.probes.lexicon.counts import count_table, sentences, translation_table

Rows = Sequence[NDArray[np.integer]]
FIRST = 1e-6
"""Share of positions that counts as the top: the very first."""
DIGITS = 9
"""Values that agree to so many digits are equal: sums of 1/L round differently."""
READ = 400
"""Pairs whose words are asked for their places."""
TELLS = 0.1
"""Words tell places from this share above chance on."""


@dataclass(frozen=True)
class Places:
    """What two halves of a corpus agree on.

    Args:
        agreed: share of target words for which both name the same source word.
        chance: that of guessing.
        shuffled: as ``agreed``, of pairs that were put together at random.
        words: target words that were asked.
    """

    agreed: float
    chance: float
    shuffled: float
    words: int

    @property
    def told(self) -> float:
        """Agreement above what shuffled pairs or guessing have, as a part of what is possible."""
        least = max(self.chance, self.shuffled)
        return (self.agreed - least) / max(1 - least, 1e-9)

    @property
    def learnable(self) -> bool:
        """Whether single words tell places, so that attention has something to follow."""
        return self.told > TELLS


def told_places(
    source: Rows, target: Rows, *, vocabulary: int, outputs: int, seed: int = 0
) -> Places:
    """Compare two halves of some pairs.

    Args:
        source: word ids of each source.
        target: word ids of each target.
        vocabulary: source words that there are.
        outputs: target words that there are.
        seed: of the halves, of the pairs that are read, of the shuffle.

    Raises:
        AttnscopeError: fewer than four pairs, or none with two source words.
    """
    if len(source) != len(target) or len(source) < 4:
        raise AttnscopeError(
            f"{len(source)} sources and {len(target)} targets: expected pairs, four or more."
        )
    dice = np.random.default_rng(seed)
    halves = np.array_split(dice.permutation(len(source)), 2)
    read = [i for i in dice.permutation(len(source)) if len(source[i]) > 1 and len(target[i])]
    if not read:
        raise AttnscopeError("no source of two words or more: expected some to tell apart.")
    read = read[:READ]
    mixed = [target[i] for i in dice.permutation(len(target))]
    shares = []
    for goals in (target, mixed):
        tables = [_table(source, goals, half, vocabulary, outputs) for half in halves]
        shares.append(_agreed(tables, source, goals, read))
    asked = np.concatenate([np.full(len(target[i]), len(source[i])) for i in read])
    return Places(shares[0], float((1 / asked).mean()), shares[1], len(asked))


def _table(
    source: Rows, target: Rows, rows: NDArray[np.int64], vocabulary: int, outputs: int
) -> sparse.csr_array:
    one = sentences([source[i] for i in rows], vocabulary=vocabulary)
    other = sentences([target[i] for i in rows], vocabulary=outputs)
    return sparse.csr_array(translation_table(count_table(one, other)))


def _agreed(tables: list[sparse.csr_array], source: Rows, target: Rows, read: list[int]) -> float:
    found, words = 0.0, 0
    for i in read:
        x, y = np.asarray(source[i]), np.asarray(target[i])
        if not len(y):
            continue
        both = [_rounded(table[x][:, y].toarray().T) for table in tables]
        mask = np.ones(both[0].shape, dtype=bool)
        found += float(mean_agreement(both[0], both[1], mask, FIRST).value) * len(y)
        words += len(y)
    return found / words


def _rounded(beta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make values that differ by rounding alone equal."""
    top = beta.max(axis=1, keepdims=True)
    return np.round(np.divide(beta, top, out=np.ones_like(beta), where=top > 0), DIGITS)
