"""The claims of ``snell2021.permutation``: section 6.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.studies.snell2021._copying_readings import (
    LEARNED,
    at_step,
    known_unattended,
    reaches,
    reading,
)
from attnscope.studies.snell2021._permutation_cases import (
    COPIED,
    COPIED_UNIFORM,
    REORDERED,
    REORDERED_UNIFORM,
)
from attnscope.tasks.copying import Copying

if TYPE_CHECKING:
    from attnscope.studies.snell2021.permutation import FixedPermutation

SOURCE = "section 6.2"
PERFECT = 0.99
UNATTENDED = 0.1
"""Attention accuracy below which attention has not been learned."""


def claims(study: FixedPermutation) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _copied(study),
        _reordered(study),
        _same_counts(study),
        _same_knowledge(study),
        _known_unattended(),
        _attention_lags(),
    )


def _copied(study: FixedPermutation) -> Claim:
    return Claim(
        key="copying-perfect",
        sentence=f"Copying always reaches perfect accuracy within {study.verdict} steps.",
        source=SOURCE,
        paper="always perfect within 300 iterations",
        statistic=lambda tree: at_step(tree, "accuracy", COPIED, study.verdict),
        criterion=above(PERFECT),
        control_sentence="the words in the order of π",
        control=lambda tree: at_step(tree, "accuracy", REORDERED, study.verdict),
        measure=f"accuracy at step {study.verdict}",
    )


def _reordered(study: FixedPermutation) -> Claim:
    return Claim(
        key="reordering-fails",
        sentence=f"Putting the words into the order of π always fails: at step {study.verdict} no "
        "seed has learned it.",
        source=SOURCE,
        paper="always fails",
        statistic=lambda tree: at_step(tree, "accuracy", REORDERED, study.verdict),
        criterion=below(LEARNED),
        control_sentence="copying",
        control=lambda tree: at_step(tree, "accuracy", COPIED, study.verdict),
        measure=f"accuracy at step {study.verdict}",
    )


def _same_counts(study: FixedPermutation) -> Claim:
    copied = study.task(COPIED)

    def distance(other: Copying) -> np.ndarray:
        """Largest difference of C from that of copying, over words that both have."""
        tables = [task.counts()[: other.vocabulary, : other.vocabulary] for task in (copied, other)]
        return np.array([np.abs(tables[0] - tables[1]).max()])

    return Claim(
        key="same-counts",
        sentence="Copying and π have the same count table, so what can be known of words is the "
        "same.",
        source=SOURCE,
        paper="β^uf behaves exactly the same for these two tasks",
        statistic=lambda _: distance(study.task(REORDERED)),
        criterion=below(1e-12),
        control_sentence=f"permutations of {study.length} words",
        control=lambda _: distance(Copying(study.length, study.length)),
        measure="largest difference of entries of C; exact",
    )


def _same_knowledge(study: FixedPermutation) -> Claim:
    def apart(tree: xr.DataTree, name: str, cases: tuple[str, str]) -> np.ndarray:
        until = tree["observables/time"].to_numpy() <= study.verdict
        one, other = (reading(tree, name, case)[:, until] for case in cases)
        return np.asarray(np.abs(one - other).mean(axis=1))

    return Claim(
        key="same-knowledge",
        sentence="With attention held at uniform, words become known alike in both tasks.",
        source=SOURCE,
        paper="β^uf behaves exactly the same for these two tasks",
        statistic=lambda tree: apart(tree, "knowledge", (COPIED_UNIFORM, REORDERED_UNIFORM)),
        criterion=below(0.05),
        control_sentence="attention to them, where attention is learned",
        control=lambda tree: apart(tree, "attention", (COPIED, REORDERED)),
        measure="difference of the shares of words whose gold position has the largest β, mean "
        f"over the first {study.verdict} steps",
    )


def _known_unattended() -> Claim:
    return Claim(
        key="known-unattended",
        sentence="In the order of π many words are known while attention has not followed.",
        source=SOURCE,
        paper="learning the correct α can be challenging",
        statistic=lambda tree: known_unattended(tree, REORDERED, UNATTENDED),
        criterion=above(0.3),
        control_sentence="accuracy in place of knowledge: such words cannot be said yet",
        control=lambda tree: known_unattended(tree, REORDERED, UNATTENDED, "accuracy"),
        measure="largest share of words whose gold position has the largest β, while less than "
        f"{UNATTENDED:g} have the largest α there",
    )


def _attention_lags() -> Claim:
    def lag(tree: xr.DataTree, case: str) -> np.ndarray:
        late, usual = (
            reaches(tree, "attention", name, 0.5) - reaches(tree, "knowledge", name, 0.5)
            for name in (case, COPIED)
        )
        # Where copying has not been learned at all there is nothing to compare with.
        return np.asarray(late / (usual.mean() or np.nan))

    return Claim(
        key="attention-lags",
        sentence="From knowledge to attention, π takes at least three times as long as copying.",
        source=SOURCE,
        paper="copying is much easier to learn",
        statistic=lambda tree: lag(tree, REORDERED),
        criterion=above(3.0),
        control_sentence="copying",
        control=lambda tree: lag(tree, COPIED),
        measure="steps from half of the words known to half of them attended, over their mean for "
        "copying; a run that never gets there counts with its last step",
    )
