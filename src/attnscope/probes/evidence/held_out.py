"""How far words alone go: accuracies on texts that were not counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attnscope.probes.evidence.bags import LabelledBags
from attnscope.probes.evidence.logistic import fit_logistic, rarity, tf_idf
from attnscope.probes.evidence.predictors import FITTED_WEIGHTS, LogOdds, strongest_words
from attnscope.probes.shares import Share, share_interval

FOLDS = 5
MOST = 20_000
"""Texts that are used at most, drawn at random."""


@dataclass(frozen=True)
class WordAccuracy:
    """Shares of held-out texts whose class is found, each with its 95 % interval.

    Args:
        bag: by a logistic regression on all words of a text.
        one_word: by the one word of a text that has the largest evidence: what attention that
            looks at a single word can do at best.
        majority: by the most frequent class, always.
        texts: how many texts were held out in turn.
    """

    bag: Share
    one_word: Share
    majority: Share
    texts: int


def word_accuracy(bags: LabelledBags, seed: int = 0) -> WordAccuracy:
    """Hold out a fifth of the texts in turn, and guess their classes from words.

    Args:
        bags: all texts.
        seed: draws texts and folds.
    """
    order = np.random.default_rng(seed).permutation(len(bags))[:MOST]
    folds = np.arange(len(order)) % min(FOLDS, max(2, len(order)))
    right = {"bag": 0, "one": 0, "most": 0}
    for fold in np.unique(folds):
        seen, held = bags.rows(np.sort(order[folds != fold])), bags.rows(order[folds == fold])
        right["most"] += int((held.labels == seen.prior.argmax()).sum())
        present = np.flatnonzero(seen.prior > 0)
        evidence = LogOdds(3.0).evidence(_only(seen, present))
        right["one"] += int((present[_strongest(held, evidence, seen)] == held.labels).sum())
        right["bag"] += int((_bag_guess(seen, held, evidence, present) == held.labels).sum())
    count = len(order)
    return WordAccuracy(
        share_interval(right["bag"], count),
        share_interval(right["one"], count),
        share_interval(right["most"], count),
        count,
    )


def _only(bags: LabelledBags, present: np.ndarray) -> LabelledBags:
    """Return the texts with the classes that some text has, numbered anew."""
    place = np.zeros(bags.classes, dtype=np.int64)
    place[present] = np.arange(len(present))
    return LabelledBags(bags.counts, place[bags.labels], len(present))


def _strongest(held: LabelledBags, evidence: np.ndarray, seen: LabelledBags) -> np.ndarray:
    """Return the class of the word of largest evidence in each text; without words the majority."""
    best = strongest_words(held, evidence.max(axis=1))
    most = int(np.argmax(seen.prior[seen.prior > 0]))
    return np.where(best >= 0, evidence.argmax(axis=1)[best], most)


def _bag_guess(
    seen: LabelledBags, held: LabelledBags, evidence: np.ndarray, present: np.ndarray
) -> np.ndarray:
    if bags_too_large(seen):
        prior = np.log(seen.prior[present])
        return present[np.asarray(held.present @ evidence + prior).argmax(axis=1)]
    idf = rarity(seen)
    fitted = fit_logistic(tf_idf(seen.counts, idf), seen.labels, seen.classes, 1.0)
    return fitted.guess(tf_idf(held.counts, idf))


def bags_too_large(bags: LabelledBags) -> bool:
    """Whether there are too many weights for a regression; log odds are added up then."""
    return bags.words * bags.classes > FITTED_WEIGHTS
