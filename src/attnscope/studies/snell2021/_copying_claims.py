"""The claims of ``snell2021.copying``: Fig 3, and the knowledge of words behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.trajectory import select
from attnscope.studies.snell2021._copying_cases import (
    DRAWN,
    DRAWN_MIXED,
    DRAWN_UNIFORM,
    DRAWN_UNION,
    LEARNERS,
    PERMUTED,
    PERMUTED_MIXED,
    PERMUTED_UNIFORM,
)
from attnscope.studies.snell2021._copying_readings import (
    LEARNED,
    at_step,
    known_unattended,
    reaches,
    reading,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.copying import CopyPermutations

FIG3 = "section 3.3, Fig 3 left"
RIGHT = "section 3.3, Fig 3 right; appendix A.3"
UNATTENDED = 0.1
"""Attention accuracy below which attention has not been learned."""


def claims(study: CopyPermutations) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _drawn_learned(study),
        _sometimes_fails(study, PERMUTED, DRAWN),
        _slower(PERMUTED),
        _sometimes_fails(study, PERMUTED_MIXED, DRAWN_UNION),
        _slower(PERMUTED_MIXED),
        _told(DRAWN, PERMUTED, FIG3 + "; section 4.3, Fig 4"),
        _not_told(PERMUTED_MIXED, DRAWN_MIXED),
        _told_before(),
        _told_suffices(study),
        _known_under_uniform(study),
        _known_first(),
        _lag(),
        _never_ahead(),
    )


def _drawn_learned(study: CopyPermutations) -> Claim:
    return Claim(
        key="draws-learned",
        sentence=f"Sequences of {study.length} of {study.types} words are learned every time "
        f"within {study.verdict} steps.",
        source=FIG3,
        paper="all 20 seeds",
        statistic=lambda tree: at_step(tree, "accuracy", DRAWN, study.verdict),
        criterion=above(LEARNED),
        control_sentence="the same words with attention held at uniform",
        control=lambda tree: at_step(tree, "accuracy", DRAWN_UNIFORM, study.verdict),
        measure=f"accuracy at step {study.verdict}",
    )


def _sometimes_fails(study: CopyPermutations, case: str, other: str) -> Claim:
    def failed(tree: xr.DataTree, name: str) -> np.ndarray:
        found = at_step(tree, "accuracy", name, study.verdict) <= LEARNED
        return np.array([found.mean()])

    mixed = case == PERMUTED_MIXED
    what = "permutations of one of two disjoint sets" if mixed else "permutations of one set"
    return Claim(
        key="mixed-sometimes-fails" if mixed else "sometimes-fails",
        sentence=f"Copying {what} of {study.length} words sometimes fails: at step {study.verdict} "
        "some seeds have not learned.",
        source=RIGHT if mixed else FIG3,
        paper="some of 20 seeds",
        statistic=lambda tree: failed(tree, case),
        criterion=above(0.0),
        control_sentence=f"{study.length} words of both sets at once"
        if mixed
        else f"{study.length} of {study.types} words",
        control=lambda tree: failed(tree, other),
        measure=f"share of seeds with accuracy {LEARNED:g} or less at step {study.verdict}",
    )


def _slower(case: str) -> Claim:
    def ratio(tree: xr.DataTree, name: str) -> np.ndarray:
        return np.asarray(
            reaches(tree, "accuracy", name, LEARNED)
            / reaches(tree, "accuracy", DRAWN, LEARNED).mean()
        )

    mixed = case == PERMUTED_MIXED
    return Claim(
        key="mixed-slower" if mixed else "slower",
        sentence=f"Copying {'a mixture of permutations' if mixed else 'permutations'} converges "
        "slower than copying draws.",
        source=RIGHT if mixed else FIG3,
        paper="converges slower",
        statistic=lambda tree: ratio(tree, case),
        criterion=above(1.5),
        control_sentence="draws from both sets at once: the words of the mixture, of which C tells",
        control=lambda tree: ratio(tree, DRAWN_UNION),
        each=False,
        measure=f"step where accuracy exceeds {LEARNED:g} over its mean for draws; a run that "
        "never gets there counts with its last step",
    )


def _excess(tree: xr.DataTree, case: str) -> np.ndarray:
    return select(tree, "told", case, "theory").to_numpy()[:1] - 1


def _told(case: str, other: str, source: str) -> Claim:
    return Claim(
        key="counts-tell",
        sentence="Before training, the count table of draws tells where a word was copied from; "
        "that of permutations does not.",
        source=source,
        paper="C is non-informative under a distribution of permutations",
        statistic=lambda tree: _excess(tree, case),
        criterion=above(0.1),
        control_sentence="permutations of one set of words",
        control=lambda tree: _excess(tree, other),
        measure="α^IBM at the gold position over its mean at all words, less 1; exact",
    )


def _not_told(case: str, other: str) -> Claim:
    return Claim(
        key="mixed-counts",
        sentence="The count table of the mixture tells the set of words, and yet within a sequence "
        "β is the same at every position.",
        source=RIGHT,
        paper="β is still uniformly 0.25 (Fig 8)",
        statistic=lambda tree: np.abs(_excess(tree, case)),
        criterion=below(1e-9),
        control_sentence="draws of one of two sets of words",
        control=lambda tree: np.abs(_excess(tree, other)),
        measure="size of α^IBM at the gold position over its mean at all words, less 1; exact",
    )


def _told_before() -> Claim:
    def ratio(tree: xr.DataTree, slow: tuple[str, str], fast: tuple[str, str]) -> np.ndarray:
        """Mean steps of two cases over those of two others, by seed."""
        means = [
            np.mean([reaches(tree, "accuracy", case, LEARNED) for case in cases], axis=0)
            for cases in (slow, fast)
        ]
        return np.asarray(means[0] / means[1])

    return Claim(
        key="counts-predict",
        sentence="Before training, the count table says which of the tasks of Fig 3 are slow: "
        "those in which it tells no places.",
        source="sections 3.3 and 4.3, Fig 3, Fig 4, Fig 8",
        paper="hard for the attention-based model to learn",
        statistic=lambda tree: ratio(tree, (PERMUTED, PERMUTED_MIXED), (DRAWN, DRAWN_UNION)),
        criterion=above(1.5),
        control_sentence="the same four tasks grouped by the size of the vocabulary",
        control=lambda tree: ratio(tree, (PERMUTED_MIXED, DRAWN_UNION), (PERMUTED, DRAWN)),
        each=False,
        measure=f"mean step where accuracy exceeds {LEARNED:g} in one pair of tasks over the "
        "other; a run that never gets there counts with its last step",
    )


def _told_suffices(study: CopyPermutations) -> Claim:
    strength = study.length * (study.types - 1) / (study.types - study.length)
    return Claim(
        key="counts-suffice",
        sentence="A count table that tells places is enough: draws of one of two disjoint sets, "
        f"which it tells as well as draws of one set, are learned within {study.verdict} steps.",
        source="beyond the paper; section 4.3 and appendix A.3",
        paper="none; the converse of what is said of Fig 8",
        statistic=lambda tree: at_step(tree, "accuracy", DRAWN_MIXED, study.verdict),
        criterion=above(LEARNED),
        control_sentence="permutations of one of two disjoint sets",
        control=lambda tree: at_step(tree, "accuracy", PERMUTED_MIXED, study.verdict),
        each=False,
        measure=f"accuracy at step {study.verdict}",
        reason="which of the two sets is learned first, and then next to nothing: the loss stays "
        f"near log {study.types} and β near 1/{study.types}, at the gold position as elsewhere. In "
        f"C, what tells sets apart is L(K - 1)/(K - L) = {strength:.0f} times as strong as what "
        f"tells the words of a set apart (eigenvalues, K = {study.types}); draws of one set have "
        "no such part. It takes more than a table that tells places.",
    )


def _known_under_uniform(study: CopyPermutations) -> Claim:
    def known(tree: xr.DataTree, case: str) -> np.ndarray:
        return at_step(tree, "knowledge", case, study.verdict)

    return Claim(
        key="known-under-uniform",
        sentence="With attention held at uniform, words are still learned from draws, and not from "
        "permutations.",
        source="sections 3.2 and 3.3",
        paper="KTIW can be learned when attention has not; the proxy provably cannot",
        statistic=lambda tree: known(tree, DRAWN_UNIFORM),
        criterion=above(0.3),
        control_sentence="permutations, attention held at uniform",
        control=lambda tree: known(tree, PERMUTED_UNIFORM),
        measure=f"share of words whose gold position has the largest β, at step {study.verdict}",
    )


def _known_first() -> Claim:
    return Claim(
        key="knowledge-first",
        sentence="Knowledge of words comes first: in draws, many words know their gold position "
        "while attention has not been learned.",
        source="sections 1 and 3.3",
        paper="KTIW drives the learning of attention",
        statistic=lambda tree: known_unattended(tree, DRAWN, UNATTENDED),
        criterion=above(0.3),
        control_sentence="permutations, where there is no such first stage",
        control=lambda tree: known_unattended(tree, PERMUTED, UNATTENDED),
        measure="largest share of words whose gold position has the largest β, while less than "
        f"{UNATTENDED:g} have the largest α there",
    )


def _lag() -> Claim:
    def lag(tree: xr.DataTree, first: str, second: str) -> np.ndarray:
        start, end = (reaches(tree, name, DRAWN, 0.5) for name in (first, second))
        return np.asarray(end / np.maximum(start, 1.0))

    return Claim(
        key="attention-later",
        sentence="In draws, attention reaches half of the words much later than knowledge does.",
        source="sections 1 and 3.3",
        paper="KTIW first, attention second",
        statistic=lambda tree: lag(tree, "knowledge", "attention"),
        criterion=above(1.5),
        control_sentence="accuracy after attention: these two come together",
        control=lambda tree: lag(tree, "attention", "accuracy"),
        measure="step where the largest α is at the gold position for half of the words, over the "
        "same of β",
    )


def _never_ahead() -> Claim:
    def ahead(tree: xr.DataTree, first: str, second: str, cases: tuple[str, ...]) -> np.ndarray:
        leads = [reading(tree, first, case) - reading(tree, second, case) for case in cases]
        return np.asarray(np.max(leads, axis=(0, 2)))

    return Claim(
        key="attention-not-ahead",
        sentence="Attention fails when knowledge fails: in no task does attention run ahead of "
        "knowledge.",
        source="section 3.3",
        paper="KTIW can be learned without attention, but not the other way around",
        statistic=lambda tree: ahead(tree, "attention", "knowledge", LEARNERS),
        criterion=below(0.15),
        control_sentence="the other way around: knowledge ahead of attention, in draws",
        control=lambda tree: ahead(tree, "knowledge", "attention", (DRAWN,)),
        measure="share of words whose gold position has the largest α, less the same of β; largest "
        "over all steps and tasks",
    )
