"""Where attention will look, from labelled texts alone: a small family behind one interface.

A predictor gives the evidence e_wc of every word for every class, from counts of training texts
and nothing else. Attention is predicted for texts whose label is not known, so what attracts it is
the largest evidence of a word for any class, :func:`attraction`. A model that attends to states,
not to words, finds in each state what the words around it say as well: :func:`held_by_states`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import softmax

from attnscope.probes.evidence.bags import Floats, LabelledBags
from attnscope.probes.evidence.logistic import fit_logistic, rarity, tf_idf

SHARPNESS = 0.7
"""κ of :func:`predicted_attention`: where the cross-entropy of learned attention was lowest, on the
sets that the predictor was chosen on (κ of 0.3, 0.5, 0.7, 1, 1.5, 2 and 3)."""
LEAK = 0.4
"""λ of :func:`held_by_states`: of 0, 0.2, 0.3, 0.4 and 0.5 the one that agreed best with the
attention of the LSTM of Snell 2021, by the sum of both measures, on the sets that the predictor was
chosen on."""
FITTED_TEXTS = 40_000
"""Texts that a logistic regression is fitted on at most, drawn at random."""
FITTED_WEIGHTS = 2_000_000
"""Words times classes that it may have; where there are more, log odds stand in its place."""


class Predictor(Protocol):
    """What gives evidence."""

    @property
    def name(self) -> str:
        """What it is called in tables."""

    def evidence(self, bags: LabelledBags) -> Floats:
        """Return e_wc, shape ``(word, class)``; larger speaks more for the class."""


@dataclass(frozen=True)
class Rarity:
    """Rarity alone, the same idf for every class: it knows no label, and others must beat it."""

    name: str = "rarity (idf)"

    def evidence(self, bags: LabelledBags) -> Floats:
        """Return idf_w for every class."""
        return np.repeat(rarity(bags)[:, None], bags.classes, axis=1)


@dataclass(frozen=True)
class LogOdds:
    """Log odds of a class given the word, over those of the class at large.

    e_wc = log[(n_wc + aπ_c) / (n_w - n_wc + a(1 - π_c))] - log[π_c / (1 - π_c)],

    with n_w texts that hold the word, n_wc of them of class c, π_c the share of the class, and a
    pseudo-counts. A word that was never seen has 0.

    Args:
        pseudo: a, how many texts of average kind each word is given.
    """

    pseudo: float = 1.0

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"log odds, {self.pseudo:g} pseudo-counts"

    def evidence(self, bags: LabelledBags) -> Floats:
        """Return e_wc."""
        inside, prior = bags.by_class, bags.prior
        outside = bags.texts_with[:, None] - inside
        odds = (inside + self.pseudo * prior) / (outside + self.pseudo * (1 - prior))
        return np.log(odds) - np.log(prior / (1 - prior))


@dataclass(frozen=True)
class Ibm1:
    """One iteration of IBM Model 1, smoothed (Snell 2021, eq 17 to 19): p(c|w) over π_c.

    Args:
        pseudo: pseudo-counts of the class prior.
    """

    pseudo: float = 10.0

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"IBM Model 1, {self.pseudo:g} pseudo-counts"

    def evidence(self, bags: LabelledBags) -> Floats:
        """Return p(c|w)/π_c - 1, 0 for a word that says nothing."""
        tokens = np.asarray(bags.counts.T @ bags.one_hot)
        share = tokens + self.pseudo * bags.prior
        share /= share.sum(axis=1, keepdims=True)
        return share / np.maximum(bags.prior, 1e-12) - 1


@dataclass(frozen=True)
class WeightIdf:
    """The weight of a word in a logistic regression on tf-idf, times its idf.

    Args:
        penalty: how strongly large weights are held back.
        seed: draws the texts, where they are more than :data:`FITTED_TEXTS`.
    """

    penalty: float = 0.1
    seed: int = 0

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return f"logistic regression, penalty {self.penalty:g}, weight × idf"

    def evidence(self, bags: LabelledBags) -> Floats:
        """Return W_wc idf_w; zero for all words where there are too many to be fitted."""
        if bags.words * bags.classes > FITTED_WEIGHTS:
            return np.zeros((bags.words, bags.classes))
        idf = rarity(bags)
        some = bags
        if len(bags) > FITTED_TEXTS:
            drawn = np.random.default_rng(self.seed).permutation(len(bags))[:FITTED_TEXTS]
            some = bags.rows(np.sort(drawn))
        fitted = fit_logistic(tf_idf(some.counts, idf), some.labels, bags.classes, self.penalty)
        return fitted.weights * idf[:, None]


@dataclass(frozen=True)
class Mixture:
    """The sum of several, each divided by its root mean square over the words of all texts.

    Args:
        parts: predictors.
    """

    parts: tuple[Predictor, ...]

    @property
    def name(self) -> str:
        """What it is called in tables."""
        return " + ".join(part.name for part in self.parts)

    def evidence(self, bags: LabelledBags) -> Floats:
        """Return the sum."""
        return sum(
            (_scaled(part.evidence(bags), bags.texts_with) for part in self.parts),
            np.zeros((bags.words, bags.classes)),
        )


CHOSEN = Mixture((LogOdds(1.0), WeightIdf(0.1)))
"""What `attnscope predict` uses: of :data:`FAMILY` the one that agreed best with learned attention
on the sets it was chosen on (:mod:`attnscope.studies.predict`), before others were looked at."""
FAMILY: tuple[Predictor, ...] = (
    LogOdds(1.0),
    LogOdds(3.0),
    LogOdds(10.0),
    Ibm1(3.0),
    Ibm1(10.0),
    WeightIdf(0.1),
    WeightIdf(1.0),
    CHOSEN,
)
"""What was compared."""


def attraction(evidence: Floats) -> Floats:
    """Return how much a word attracts attention when the label is not known: max_c e_wc.

    With two classes of equal size this is |e_w|.
    """
    return evidence.max(axis=1)


def strongest_words(bags: LabelledBags, attraction: Floats) -> np.ndarray:
    """Return the word of each text that attracts most, of equals the first; -1 without words."""
    starts, words = bags.counts.indptr, bags.counts.indices
    best = np.full(len(bags), -1, dtype=np.int64)
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        drawn = attraction[words]
        tops = np.maximum.reduceat(drawn, starts[filled])
        rows = np.repeat(np.arange(len(filled)), np.diff(starts)[filled])
        hit = np.flatnonzero(drawn == tops[rows])[::-1]
        # Assigned backwards, so that of equals the first one is left.
        best[filled[rows[hit]]] = words[hit]
    return best


def picked_share(bags: LabelledBags, attraction: Floats) -> Floats:
    """Return the share of texts in which each word attracts more than all others."""
    best = strongest_words(bags, attraction)
    return np.bincount(best[best >= 0], minlength=bags.words) / max(len(bags), 1)


def held_by_states(evidence: Floats, leak: float = LEAK) -> Floats:
    """Return what the state at each position holds: Σ_k λ^|t - k| e_kc, both ways.

    The state of a recurrent network is a leaky sum of what it has read. Evidence keeps its sign, so
    that neighbours which speak for different classes take from each other.

    >>> held_by_states(np.array([[0.0], [1.0], [0.0]]), 0.5).ravel().tolist()
    [0.5, 1.0, 0.5]

    Args:
        evidence: e_tc of the words of a text, shape ``(..., position, class)``; 0 at padding.
        leak: λ; at 0 a position holds its own word alone, as in a bag of words.
    """
    if not leak:
        return evidence
    ahead, back = evidence.copy(), evidence.copy()
    for t in range(1, evidence.shape[-2]):
        ahead[..., t, :] += leak * ahead[..., t - 1, :]
        back[..., -1 - t, :] += leak * back[..., -t, :]
    return ahead + back - evidence


def predicted_attention(
    evidence: Floats, ids: np.ndarray, sharpness: float = SHARPNESS, leak: float = LEAK
) -> Floats:
    """Return α ∝ exp(κ max_c e'_tc) over the words of one text, e' as in :func:`held_by_states`.

    Args:
        evidence: e_wc of every word, shape ``(word, class)``.
        ids: the words of the text.
        sharpness: κ; at 0 attention is uniform.
        leak: λ.
    """
    if not len(ids):
        return np.zeros(0)
    return softmax(sharpness * held_by_states(evidence[ids], leak).max(axis=1))


def _scaled(evidence: Floats, texts_with: Floats) -> Floats:
    square = float((texts_with @ evidence**2).mean() / max(texts_with.sum(), 1.0))
    return evidence / np.sqrt(square) if square > 0 else evidence
