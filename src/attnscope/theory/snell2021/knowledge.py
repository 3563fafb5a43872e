"""Can words be learned from this data at all? The prediction of Snell 2021, before any training.

The paper's chain: under uniform attention a model learns which output word o an input word i goes
with, from the count table C (eq 16) alone; attention then follows that knowledge. So read off C

    Trans(o|i) = C_io / Σ_o' C_io',   β_tl = Trans(y_t|x_l),   α_tl = β_tl / Σ_l' β_tl'   (eq 17-19)

and look at α over the positions of each sentence. If it is uniform, knowledge of words cannot tell
positions apart and attention has nothing to follow, however informative C is about sentences as a
whole (A.3). Classification is the case of one target word a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import sparse

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64, word_numbers
from attnscope.theory.snell2021.derivative import Counts
from attnscope.theory.snell2021.pair_bags import Sequences

Learnable = Literal["learnable", "partly learnable", "not learnable", "uneven"]
HARDLY = 0.1
"""Bits below which a word hardly says anything."""
TIE = 1e-9
"""Relative difference below which two values are equal: sums of 1/L round differently."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What the count table says about each target word of some pairs.

    A *token* is a target position of a pair; arrays of tokens run through the pairs in order.

    Args:
        pair: pair of each token, shape ``(token,)``.
        length: source positions of its pair, shape ``(token,)``.
        beta: β^IBM, for each pair an array ``(target position, source position)``.
        alpha: α^IBM, likewise; uniform where C has none of the pair's words with the target word.
        early: dβ^px/dτ at the start of training, (2/|O|)(C - mean_o C) at (x_l, y_t), likewise.
        variation: total variation distance of α from uniform, 0 to 1 - 1/L, shape ``(token,)``.
        divergence: KL(α ‖ uniform) in nats, shape ``(token,)``.
        gold_mass: α at the gold position; NaN where there is no gold, shape ``(token,)``.
        singled_out: 1 if α is largest at the gold word and nowhere else, 0 if not, NaN where there
            is no gold or only one position, shape ``(token,)``.
        singled_out_early: the same for ``early``.
        table_variation: how much C says at all: mean total variation distance of Trans(·|i) from
            the shares of output words, over input words by their weight in C.
        gain: how much likelier the source word that knows best makes each target word than its
            share of all target words does, log₂(max_l β_tl / share(y_t)) in bits, shape
            ``(token,)``; the same for every target word of an uninformative table is 0.
    """

    pair: np.ndarray
    length: np.ndarray
    beta: tuple[np.ndarray, ...]
    alpha: tuple[np.ndarray, ...]
    early: tuple[np.ndarray, ...]
    variation: np.ndarray
    divergence: np.ndarray
    gold_mass: np.ndarray
    singled_out: np.ndarray
    singled_out_early: np.ndarray
    table_variation: float
    gain: np.ndarray

    @property
    def mean_variation(self) -> float:
        """Mean distance of α from uniform over tokens."""
        return float(self.variation.mean())

    @property
    def mean_gold_mass(self) -> float:
        """Mean of α at the gold position over tokens with gold; NaN without any."""
        return _mean(self.gold_mass)

    @property
    def gold_chance(self) -> float:
        """What uniform attention would put at the gold position: mean 1/L over tokens with gold."""
        return _mean(np.where(np.isnan(self.gold_mass), np.nan, 1 / self.length))

    @property
    def share_singled_out(self) -> float:
        """Share of tokens with gold whose gold word alone has the largest α; NaN without any."""
        return _mean(self.singled_out)

    @cached_property
    def learnable(self) -> Learnable:
        """The verdict.

        Without gold, "not learnable" if α is uniform for every token, else "uneven": words can be
        told apart, but whether rightly is not known. With gold it is decided by the share of tokens
        whose gold word is singled out, less what chance would reach: above a half "learnable",
        above 0.05 "partly learnable".
        """
        if self.variation.max() <= TIE:
            return "not learnable"
        known = ~np.isnan(self.singled_out)
        if not known.any():
            return "uneven"
        chance = float((1 / self.length[known]).mean())
        excess = (self.share_singled_out - chance) / (1 - chance)
        if excess > 0.5:
            return "learnable"
        return "partly learnable" if excess > 0.05 else "not learnable"

    def __str__(self) -> str:
        if self.variation.max() <= TIE and self.table_variation <= TIE:
            return (
                "not learnable: every input word occurs with the same output words in the same "
                "shares, so β is exactly uniform over the positions of every sentence."
            )
        if self.variation.max() <= TIE:
            return (
                "not learnable: the table tells sentences apart (its rows differ by "
                f"{self.table_variation:.2g} in total variation), but within every sentence β is "
                "exactly uniform over positions."
            )
        apart = f"α is {self.mean_variation:.2g} from uniform in total variation"
        if np.isnan(self.mean_gold_mass):
            bits = float(self.gain.mean())
            worth = "hardly more" if bits < HARDLY else f"{2**bits:.2g} times as"
            return (
                f"{self.learnable}: {apart}. The source word that knows best makes its target word "
                f"{worth} likely ({bits:.2g} bits, mean over target words; more than {HARDLY:g} "
                f"bits for {np.mean(self.gain > HARDLY):.0%} of them). There is no gold to say "
                "whether that is the right word."
            )
        gold = (
            f"{apart} and puts {self.mean_gold_mass:.2g} at the gold position (uniform: "
            f"{self.gold_chance:.2g})"
        )
        if np.isnan(self.share_singled_out):
            return f"{self.learnable}: {gold}."
        return (
            f"{self.learnable}: {gold}; the gold word has the largest β by itself for "
            f"{100 * self.share_singled_out:.3g} % of the target words."
        )


def predict_knowledge(
    counts: Counts,
    sources: Sequences,
    targets: Sequences,
    gold: Numbers | Sequence[Numbers] | None = None,
) -> Knowledge:
    """Predict from a count table whether lexical knowledge of some pairs can be learned.

    Args:
        counts: C of eq 16, dense or sparse, ``(input word, output word)``: of the training pairs,
            or its expectation. Its scale does not matter, except for ``early``.
        sources: word ids of each input.
        targets: word ids of each output; a single label for classification.
        gold: source position of each target position, -1 for none: one array a pair, or one array
            for all pairs.

    >>> same = predict_knowledge(np.ones((3, 3)), [[0, 1, 2]], [[2, 0, 1]], [2, 0, 1])
    >>> same.learnable
    'not learnable'
    """
    table = sparse.csr_array(counts if sparse.issparse(counts) else float64(counts))
    if table.ndim != 2 or table.nnz == 0 or table.data.min() < 0:
        raise AttnscopeError(
            f"counts of shape {table.shape} with {table.nnz} entries: expected a table "
            "(input word, output word) of numbers of 0 or more, not all of them 0."
        )
    if len(sources) != len(targets) or len(sources) == 0:
        raise AttnscopeError(
            f"{len(sources)} sources and {len(targets)} targets: expected pairs, one or more."
        )
    totals = np.asarray(table.sum(axis=1), dtype=np.float64)
    tokens = []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        x, y = word_numbers(source), word_numbers(target)
        _check_words(number, x, y, table.shape)
        at = _gold_positions(gold, number, len(sources), len(y), len(x))
        tokens.append(_Pair.look(table, totals, x, y, at))
    return Knowledge(
        pair=np.repeat(np.arange(len(tokens)), [len(p.beta) for p in tokens]),
        length=np.concatenate([np.full(len(p.beta), p.beta.shape[1]) for p in tokens]),
        beta=tuple(p.beta for p in tokens),
        alpha=tuple(p.alpha for p in tokens),
        early=tuple(p.early for p in tokens),
        variation=np.concatenate([p.variation for p in tokens]),
        divergence=np.concatenate([p.divergence for p in tokens]),
        gold_mass=np.concatenate([p.gold_mass for p in tokens]),
        singled_out=np.concatenate([p.singled_out for p in tokens]),
        singled_out_early=np.concatenate([p.singled_out_early for p in tokens]),
        table_variation=_table_variation(table, totals),
        gain=np.concatenate(_gains(table, tokens, targets)),
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """The same as :class:`Knowledge` for one pair."""

    beta: np.ndarray
    alpha: np.ndarray
    early: np.ndarray
    variation: np.ndarray
    divergence: np.ndarray
    gold_mass: np.ndarray
    singled_out: np.ndarray
    singled_out_early: np.ndarray

    @classmethod
    def look(
        cls,
        table: sparse.csr_array,
        totals: np.ndarray,
        x: np.ndarray,
        y: np.ndarray,
        gold: np.ndarray,
    ) -> _Pair:
        outputs = table.shape[1]
        found = table[x][:, y].toarray().T
        row = totals[x]
        # A word that the table has never seen knows nothing.
        beta = np.divide(found, row, out=np.zeros(found.shape), where=row > 0)
        sums = beta.sum(axis=1, keepdims=True)
        uniform = np.full(beta.shape, 1 / len(x))
        alpha = np.divide(beta, sums, out=uniform.copy(), where=sums > 0)
        early = 2 / outputs * (found - row / outputs)
        logs = np.log(np.where(alpha > 0, alpha * len(x), 1.0))
        has = gold >= 0
        mass = np.where(has, alpha[np.arange(len(y)), np.maximum(gold, 0)], np.nan)
        return cls(
            beta,
            alpha,
            early,
            np.abs(alpha - 1 / len(x)).sum(axis=1) / 2,
            (alpha * logs).sum(axis=1),
            mass,
            _singled_out(beta, x, gold, np.abs(beta).max()),
            _singled_out(early, x, gold, 2 / outputs * found.max()),
        )


def _singled_out(values: np.ndarray, x: np.ndarray, gold: np.ndarray, size: float) -> np.ndarray:
    """Say where the largest values are all at the word of the gold position.

    Args:
        values: shape ``(target position, source position)``.
        x: words of the source.
        gold: gold positions, -1 for none.
        size: numbers that the values are differences of; they are equal up to ``TIE`` of it.
    """
    if len(x) < 2:
        return np.full(len(gold), np.nan)
    largest = values >= values.max(axis=1, keepdims=True) - TIE * size
    right = x[None, :] == x[np.maximum(gold, 0)][:, None]
    return np.where(gold >= 0, (~largest | right).all(axis=1).astype(float), np.nan)


def _gains(table: sparse.csr_array, tokens: list[_Pair], targets: Sequences) -> list[np.ndarray]:
    shares = np.asarray(table.sum(axis=0), dtype=np.float64) / table.sum()
    found = []
    for pair, target in zip(tokens, targets, strict=True):
        share, best = shares[word_numbers(target)], pair.beta.max(axis=1)
        known = (share > 0) & (best > 0)
        ratio = np.divide(best, share, out=np.ones(len(best)), where=known)
        found.append(np.log2(ratio))
    return found


def _table_variation(table: sparse.csr_array, totals: np.ndarray) -> float:
    shares = np.asarray(table.sum(axis=0)) / totals.sum()
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    trans, share = table.data / totals[rows], shares[table.indices]
    # Outputs that a row does not hold add their share; summed over all outputs shares make 1.
    distance = np.bincount(rows, np.abs(trans - share) - share, minlength=len(totals)) + 1
    # Rows without any count weigh nothing.
    return max(0.0, float((totals * distance).sum() / totals.sum() / 2))


def _gold_positions(
    gold: Numbers | Sequence[Numbers] | None, number: int, pairs: int, targets: int, sources: int
) -> np.ndarray:
    if gold is None:
        return np.full(targets, -1)
    entries = list(gold)  # type: ignore[arg-type]
    shared = all(np.ndim(entry) == 0 for entry in entries)
    if not shared and len(entries) != pairs:
        raise AttnscopeError(f"gold for {len(entries)} pairs: expected one array for {pairs}.")
    found = word_numbers(gold if shared else entries[number])  # type: ignore[arg-type]
    if len(found) != targets or found.min(initial=-1) < -1 or found.max(initial=-1) >= sources:
        raise AttnscopeError(
            f"gold of pair {number} is {found.tolist()}: expected {targets} positions, one a "
            f"target word, from 0 to {sources - 1}, or -1 for none."
        )
    return found


def _check_words(number: int, x: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> None:
    for name, words, size in (("source", x, shape[0]), ("target", y, shape[1])):
        if len(words) == 0 or words.min() < 0 or words.max() >= size:
            raise AttnscopeError(
                f"{name} of pair {number} is {words.tolist()}: expected word ids from 0 to "
                f"{size - 1}, one or more."
            )


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
