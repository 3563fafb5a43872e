"""The claims of ``snell2021.multihead``: the three scenarios of Fig 6."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below, within
from attnscope.studies.old import Claim
from attnscope.trajectory import select
from attnscope.studies.snell2021._multihead_pools import (
    ALL_BAD,
    BAD,
    CANDIDATE,
    GOOD,
    ONE_GOOD,
    RANDOM,
    judged,
    pools,
    trials,
)
from attnscope.studies.snell2021._multihead_readings import best, final, learned

if TYPE_CHECKING:
    from attnscope.studies.snell2021.multihead import Multihead

FIG6 = "section 5.2, Fig 6"
BEYOND = "beyond the paper; section 5.2"


def claims(study: Multihead) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _both_kinds(study),
        _all_bad(study),
        _one_good(study),
        _one_helps(),
        _random(study),
        _chance(study),
        _good_head(),
    )


def _both_kinds(study: Multihead) -> Claim:
    def fewer(accuracy: np.ndarray) -> np.ndarray:
        good, bad = judged(accuracy)
        return np.array([min(good.sum(), bad.sum())])

    return Claim(
        key="both-kinds",
        sentence="With everything but the head the same, some starts of a single head are good on "
        f"all of {study.streams} streams of data, and some are bad on all of them.",
        source=FIG6,
        paper="found by rejection sampling",
        statistic=lambda tree: fewer(trials(tree, study.streams)),
        criterion=above(0),
        control_sentence="the same heads judged after a tenth of the steps",
        control=lambda tree: fewer(
            trials(tree, study.streams)[:, :, : 1 + (study.points - 1) // 10]
        ),
        measure="the smaller of the numbers of good and of bad starts",
        reason="the start of the head does not decide alone: see the table of candidates.",
    )


def _all_bad(study: Multihead) -> Claim:
    return Claim(
        key="all-bad",
        sentence=f"If the starts of all {study.heads} heads are bad, the model fails: its accuracy "
        f"is below {BAD:g} after {study.epochs} steps.",
        source=FIG6,
        paper="likely to fail",
        statistic=lambda tree: final(tree, ALL_BAD),
        criterion=below(BAD),
        control_sentence="one of them is good",
        control=lambda tree: final(tree, ONE_GOOD),
        each=False,
        measure="accuracy at the end",
        reason="heads that are bad alone need not be bad together: the model ends above what each "
        "of them reaches in its own trials (tables of scenarios and candidates).",
    )


def _one_good(study: Multihead) -> Claim:
    def bad_alone(tree: xr.DataTree) -> np.ndarray:
        accuracy = trials(tree, study.streams)
        return np.asarray(accuracy[list(pools(accuracy).bad)].max(axis=2).ravel())

    return Claim(
        key="one-good",
        sentence=f"If the start of one of {study.heads} heads is good, the model learns: its "
        f"accuracy exceeds {GOOD:g} within {study.epochs} steps.",
        source=FIG6,
        paper="likely to learn",
        statistic=lambda tree: best(tree, ONE_GOOD),
        criterion=above(GOOD),
        control_sentence="single bad heads, every trial",
        control=bad_alone,
        each=False,
        measure="largest accuracy",
        reason="a good head is one of several that the output reads, and learns later than alone "
        "(figure of the attending heads).",
    )


def _one_helps() -> Claim:
    return Claim(
        key="one-helps",
        sentence="A good head in place of one of the bad ones raises the accuracy at the end.",
        source=FIG6,
        paper="blue above red",
        statistic=lambda tree: final(tree, ONE_GOOD) - final(tree, ALL_BAD),
        criterion=above(0.1),
        control_sentence="all bad less all bad of the next seed",
        control=lambda tree: final(tree, ALL_BAD) - np.roll(final(tree, ALL_BAD), 1),
        each=False,
        measure="accuracy at the end, one good less all bad, same data",
        reason="bad heads together learn as well by the end (table of scenarios).",
    )


def _random(study: Multihead) -> Claim:
    return Claim(
        key="random",
        sentence=f"{study.heads} random heads learn: accuracy exceeds {GOOD:g} within "
        f"{study.epochs} steps.",
        source=FIG6,
        paper="with very high probability",
        statistic=lambda tree: best(tree, RANDOM),
        criterion=above(GOOD),
        control_sentence="one random head",
        control=lambda tree: best(tree, CANDIDATE),
        each=False,
        measure="largest accuracy",
    )


def _chance(study: Multihead) -> Claim:
    def missed(tree: xr.DataTree, predicted: str) -> np.ndarray:
        return np.array([learned(tree, RANDOM).mean() - float(tree[f"theory/{predicted}"])])

    return Claim(
        key="chance",
        sentence=f"{study.heads} random heads learn as often as one of them or more is good, "
        "1 - (1 - q)^K, with q the share of good single heads.",
        source=FIG6,
        paper="the probability that all are bad is exponentially small",
        statistic=lambda tree: missed(tree, "share_learned"),
        criterion=within(-0.25, 0.25),
        control_sentence="q, as if there were one head",
        control=lambda tree: missed(tree, "share_good"),
        measure="share of runs that learn less the predicted one",
    )


def _good_head() -> Claim:
    def ahead(tree: xr.DataTree, head: int) -> np.ndarray:
        attention = select(tree, "attention", ONE_GOOD).isel(step=-1).to_numpy()
        others = np.delete(attention, head, axis=1)
        return np.asarray(attention[:, head] - others.max(axis=1))

    def bad_ahead(tree: xr.DataTree) -> np.ndarray:
        heads = tree["observables/attention"].sizes["head"]
        return np.mean([ahead(tree, head) for head in range(1, heads)], axis=0)

    return Claim(
        key="good-head",
        sentence="It is the good head that ends up looking at the right positions, more than any "
        "of the bad ones.",
        source=BEYOND,
        paper="not measured",
        statistic=lambda tree: ahead(tree, 0),
        criterion=above(0.0),
        control_sentence="a bad head of the same run in its place, mean over them",
        control=bad_ahead,
        each=False,
        measure="share of words whose right position has the head's largest α, less that of the "
        "best other head",
        reason="the start of a head does not decide where it looks when other heads learn with it "
        "(figure of the attending heads).",
    )
