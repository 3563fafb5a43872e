"""How near words of real text are to theory: the claims on Fig 4, Lemma 2 and the vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above
from attnscope.studies.old import Claim
from attnscope.probes.predictors import fit
from attnscope.studies.lu2021 import _sst_words as words
from attnscope.studies.lu2021._sst_names import key, named
from attnscope.studies.lu2021._sst_tables import statistics, vocabulary_gap

if TYPE_CHECKING:
    from attnscope.studies.lu2021.sst import Sst

WITHIN = 0.10
"""The stated distance: ten percent of the norm."""
FREQUENT = 20
"""Words in so many sentences have a purity that is more than chance."""

LAWS = {
    "theorem1": ("Theorem 1 with each word's own averages", words.theorem1_deviation),
    "corollary1": ("Corollary 1 with each word's own m", words.corollary1_deviation),
    "lemma2": (
        "Lemma 2 with each word's own averages, for the speed of the score",
        words.lemma2_deviation,
    ),
    "integral": (
        "the score that Lemma 2 integrates to, with each word's own averages",
        words.integral_deviation,
    ),
}
"""What a word is held against, and how far off it is."""

Statistic = Callable[[xr.DataTree], np.ndarray]


def claims(study: Sst, case: str) -> list[Claim]:
    """Return the claims of one case."""
    out = [_fig4(study, case, law) for law in LAWS]
    out.append(_early(study, case))
    if case.endswith("paper"):
        out.append(_direction(study, case))
    return [*out, _predicted(case, 1), _predicted(case, FREQUENT)]


def _fig4(study: Sst, case: str, theory: str) -> Claim:
    law, deviation = LAWS[theory]
    ours = theory in ("lemma2", "integral")

    def share(wrong: bool) -> Statistic:
        def statistic(tree: xr.DataTree) -> np.ndarray:
            top = words.top_words(tree, case, study.top)
            partner = top[:, ::-1] if wrong else None
            return words.share_within(deviation(tree, case, top, partner), WITHIN)

        return statistic

    return Claim(
        key=key(f"fig4-{theory}", case),
        sentence=f"{named(case)}: most of the {study.top} words of the largest scores stay within "
        f"{WITHIN:.0%} of {law}, through all of training.",
        source="Lemma 2, eq (8); ours on text" if ours else "section 5.2, Fig 4",
        paper="not studied" if ours else "most of the words",
        statistic=share(False),
        criterion=above(0.5),
        control_sentence="each word against the curve of another of the top words",
        control=share(True),
        reason="The push of the classifier differs between the sentences of a word, and eq (8) "
        "takes the mean of a product for the product of the means."
        if ours
        else "What stands around a word moves as well, which eqs (9) and (10) hold at rest: most "
        "curves come near theory in the end, not at all times (see the table of shares).",
        measure="share of the words, as part of the largest |ds/dt| or score of the word"
        if ours
        else f"share of the words, while the norm is above {words.GROWN:.0%} of its largest",
    )


def _early(study: Sst, case: str) -> Claim:
    def share(wrong: bool) -> Statistic:
        def statistic(tree: xr.DataTree) -> np.ndarray:
            top = words.top_words(tree, case, study.top)
            off = words.theorem1_deviation(tree, case, top, top[:, ::-1] if wrong else None)
            measured = words.of_words(words.values(tree, "distance_measured", case, "theory"), top)
            return words.share_within(np.where(words.early(measured), off, np.nan), WITHIN)

        return statistic

    return Claim(
        key=key("initial", case),
        sentence=f"{named(case)}: until a word has come half its way, Theorem 1 holds for nearly "
        "all of the top words.",
        source="section 5, 'at least in initial training stages'",
        paper="holds",
        statistic=share(False),
        criterion=above(0.8),
        control_sentence="each word against the curve of another of the top words",
        control=share(True),
        reason="Early on the averages around a word move faster than the word itself; Lemma 2, "
        "which follows them, holds better (see the claims on it).",
        measure=f"share of the top {study.top} within {WITHIN:.0%}",
    )


def _direction(study: Sst, case: str) -> Claim:
    def agreement(tree: xr.DataTree, always: bool) -> np.ndarray:
        sides = words.values(tree, "identity", case)
        top = words.top_words(tree, case, study.top)
        measured, predicted = (words.of_words(sides[..., i], top) for i in (2, 3))
        known = np.isfinite(measured)
        rises = np.ones_like(predicted) if always else predicted
        same = (np.sign(measured) == np.sign(rises)) & known
        return np.asarray(same.sum(axis=(1, 2)) / known.sum(axis=(1, 2)))

    return Claim(
        key=key("direction", case),
        sentence=f"{named(case)}: at every moment Lemma 2 tells whether the score of a leading "
        "word rises or falls.",
        source="Lemma 2, eq (8); ours on text",
        paper="the sign of ds/dt",
        statistic=lambda tree: agreement(tree, False),
        criterion=above(0.95),
        control_sentence="a theory that says 'rises', always",
        control=lambda tree: agreement(tree, True),
        measure=f"share of moments and of the top {study.top} words with the right sign",
    )


def _predicted(case: str, least: int) -> Claim:
    def share(shuffled: bool) -> Statistic:
        def statistic(tree: xr.DataTree) -> np.ndarray:
            known, enough = statistics(tree), tree["data/occurrences"].to_numpy() >= least
            out = []
            for seed, gap in enumerate(vocabulary_gap(tree, case)):
                target = gap[enough]
                if shuffled:
                    target = np.random.default_rng(seed).permutation(target)
                table = {name: column[enough] for name, column in known.items()}
                out.append(fit(target, table).explained)
            return np.array(out)

        return statistic

    few = least > 1
    return Claim(
        key=key("predicted-frequent" if few else "predicted", case),
        sentence=f"{named(case)}: "
        + (f"for words in {least} sentences or more, a" if few else "over the whole vocabulary, a")
        + " word's distance from Theorem 1 is strongly related to its occurrence, its purity and "
        "its purer company.",
        source="section 5.2, 'strongly related'; the fit is ours",
        paper="strongly related",
        statistic=share(False),
        criterion=above(0.3),
        control_sentence="the distances handed to other words",
        control=share(True),
        reason=""
        if few
        else "Half of the vocabulary stands in one sentence, where purity is one by definition and "
        "tells nothing.",
        measure="share explained by a linear fit, on words it has not seen",
    )
