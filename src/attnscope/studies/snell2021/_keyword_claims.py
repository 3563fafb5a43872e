"""The claims of ``snell2021.keyword``: hypothesis 2, observation 3, and when each holds.

"≫" is read as a gap of more than a fifth of the range of the four quantities, "≈" as one of less
than a tenth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.trajectory import select
from attnscope.studies.snell2021._keyword_cases import (
    BOTH_WAYS,
    BOTH_WAYS_LEARNED,
    ONE_WAY,
    ONE_WAY_LEARNED,
)
from attnscope.studies.snell2021._keyword_readings import (
    END,
    HALF,
    HYPOTHESIS_2,
    KEYWORD,
    LAST,
    LEARNED,
    MEAN,
    NEXT,
    OBSERVATION_3,
    TWICE,
    alike,
    apart,
    at,
)

if TYPE_CHECKING:
    from attnscope.studies.snell2021.keyword import KeywordDrift

MUCH, ABOUT = 0.2, 0.1
"""Shares of the range of the four quantities: what "≫" asks for, and what "≈" allows."""
WHEN = {
    HALF: f"half the steps to {100 * LEARNED:.0f} % accuracy",
    TWICE: f"twice the steps to {100 * LEARNED:.0f} % accuracy",
    END: "the end of the run",
}
HYP2, OBS3 = "section 6.1, hypothesis 2, eq 24, Fig 7", "section 6.1, observation 3, eq 25, Fig 7"
BEYOND = "beyond the paper; section 6.1"
APART = "smaller of the two gaps written as ≫, over the range of the four"
ALIKE = "gap of the two written as ≈, over the range of the four"
PLATEAUS = (
    "once the keyword is learned, a one-way LSTM keeps it, and every state from the keyword on is "
    "nearly the last one: "
)


def claims(study: KeywordDrift) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        *_early(ONE_WAY, "one-way"),
        *_early(BOTH_WAYS, "both-ways"),
        _after(),
        _after_alike(),
        _order_at_end(study),
        _much_at_end(study),
        _alike_at_end(study),
        _plateaus(),
        _both_ways(),
        _learned(ONE_WAY_LEARNED, "one-way"),
        _learned(BOTH_WAYS_LEARNED, "both-ways"),
    )


def _early(case: str, key: str) -> tuple[Claim, Claim]:
    words = "An LSTM that reads one way" if case == ONE_WAY else "An LSTM that reads both ways"
    return (
        Claim(
            key=f"early-{key}",
            sentence=f"{words}, uniform attention, {WHEN[HALF]}: γ_l* ≫ γ_l*+1 ≫ γ̄, γ_L.",
            source=HYP2,
            paper="true when training starts",
            statistic=lambda tree: apart(tree, case, HALF, HYPOTHESIS_2),
            criterion=above(MUCH),
            control_sentence=WHEN[END],
            control=lambda tree: apart(tree, case, END, HYPOTHESIS_2),
            measure=APART,
            reason="the order is the printed one where the number is above 0, but γ_l*+1 stands "
            "less than a fifth of the range above γ̄: the half of its state that reads backwards "
            "has not met the keyword.",
        ),
        Claim(
            key=f"early-alike-{key}",
            sentence=f"{words}, uniform attention, {WHEN[HALF]}: γ̄ ≈ γ_L.",
            source=HYP2,
            paper="true when training starts",
            statistic=lambda tree: alike(tree, case, HALF, HYPOTHESIS_2),
            criterion=below(ABOUT),
            control_sentence=WHEN[END],
            control=lambda tree: alike(tree, case, END, HYPOTHESIS_2),
            measure=ALIKE,
        ),
    )


def _after() -> Claim:
    return Claim(
        key="after",
        sentence=f"One way, uniform attention, {WHEN[TWICE]}: γ_L ≫ γ_l*+1 ≫ γ̄, γ_l*.",
        source=OBS3,
        paper="true asymptotically",
        statistic=lambda tree: apart(tree, ONE_WAY, TWICE, OBSERVATION_3),
        criterion=above(MUCH),
        control_sentence=WHEN[HALF],
        control=lambda tree: apart(tree, ONE_WAY, HALF, OBSERVATION_3),
        measure=APART,
    )


def _after_alike() -> Claim:
    return Claim(
        key="after-alike",
        sentence=f"One way, uniform attention, {WHEN[TWICE]}: γ̄ ≈ γ_l*.",
        source=OBS3,
        paper="true asymptotically",
        statistic=lambda tree: alike(tree, ONE_WAY, TWICE, OBSERVATION_3),
        criterion=below(ABOUT),
        control_sentence=WHEN[HALF],
        control=lambda tree: alike(tree, ONE_WAY, HALF, OBSERVATION_3),
        measure=ALIKE,
        reason="γ_l* and γ̄ only cross: γ_l* is the larger before and again at the end, and both "
        "move fast where they do.",
    )


def _order_at_end(study: KeywordDrift) -> Claim:
    return Claim(
        key="end",
        sentence=f"One way, uniform attention, after {study.epochs:,} steps: γ_L > γ_l*+1 > γ̄ and "
        "γ_l*; the last position has become the largest.",
        source=OBS3,
        paper="true asymptotically",
        statistic=lambda tree: apart(tree, ONE_WAY, END, OBSERVATION_3),
        criterion=above(0.0),
        control_sentence="the same for an LSTM that reads both ways",
        control=lambda tree: apart(tree, BOTH_WAYS, END, OBSERVATION_3),
        measure=APART,
    )


def _much_at_end(study: KeywordDrift) -> Claim:
    return Claim(
        key="end-much",
        sentence=f"One way, uniform attention, after {study.epochs:,} steps: γ_L ≫ γ_l*+1 ≫ γ̄, "
        "γ_l*.",
        source=OBS3,
        paper="true asymptotically",
        statistic=lambda tree: apart(tree, ONE_WAY, END, OBSERVATION_3),
        criterion=above(MUCH),
        control_sentence=WHEN[HALF],
        control=lambda tree: apart(tree, ONE_WAY, HALF, OBSERVATION_3),
        measure=APART,
        reason=PLATEAUS + "γ_l*+1 catches up with γ_L (table of the four quantities).",
    )


def _alike_at_end(study: KeywordDrift) -> Claim:
    return Claim(
        key="end-alike",
        sentence=f"One way, uniform attention, after {study.epochs:,} steps: γ̄ ≈ γ_l*.",
        source=OBS3,
        paper="true asymptotically",
        statistic=lambda tree: alike(tree, ONE_WAY, END, OBSERVATION_3),
        criterion=below(ABOUT),
        control_sentence=WHEN[HALF],
        control=lambda tree: alike(tree, ONE_WAY, HALF, OBSERVATION_3),
        measure=ALIKE,
        reason=PLATEAUS + "γ_l* rises towards γ_L, while γ̄ stays near half of it, since about half "
        "of the positions stand before the keyword (claim 'plateaus').",
    )


def _plateaus() -> Claim:
    def error(tree: xr.DataTree) -> np.ndarray:
        gamma = at(tree, "gamma", ONE_WAY, END)
        spread = gamma.max(axis=1) - gamma.min(axis=1)
        predicted = select(tree, "gamma_mean", ONE_WAY, "theory").isel(step=-1).to_numpy()
        return np.asarray(np.abs(predicted - gamma[:, MEAN]) / spread)

    def wrong(tree: xr.DataTree) -> np.ndarray:
        # As if the keyword were known at every position, before it too.
        gamma = at(tree, "gamma", ONE_WAY, END)
        spread = gamma.max(axis=1) - gamma.min(axis=1)
        return np.asarray(np.abs(gamma[:, LAST] - gamma[:, MEAN]) / spread)

    return Claim(
        key="plateaus",
        sentence="Why, one way: at the end γ̄ = r γ_L + (1 - r) γ̄_neg, two plateaus, with r the "
        "share of positions from the keyword on.",
        source=BEYOND,
        paper="not studied",
        statistic=error,
        criterion=below(ABOUT),
        control_sentence="one plateau, r = 1",
        control=wrong,
        measure="distance of γ̄ from the two plateaus, over the range of the four",
    )


def _both_ways() -> Claim:
    def ahead(tree: xr.DataTree, case: str) -> np.ndarray:
        gamma = at(tree, "gamma", case, END)
        spread = gamma.max(axis=1) - gamma.min(axis=1)
        return np.asarray((gamma[:, KEYWORD] - gamma[:, NEXT]) / spread)

    return Claim(
        key="both-ways",
        sentence="Fig 7 is not that of an LSTM that reads both ways: there γ_l* ≫ γ_l*+1 to the "
        "end.",
        source=BEYOND,
        paper="the kind of LSTM is not given",
        statistic=lambda tree: ahead(tree, BOTH_WAYS),
        criterion=above(MUCH),
        control_sentence="an LSTM that reads one way",
        control=lambda tree: ahead(tree, ONE_WAY),
        measure="γ_l* - γ_l*+1 at the end, over the range of the four",
    )


def _learned(case: str, key: str) -> Claim:
    def near(tree: xr.DataTree, name: str) -> np.ndarray:
        alpha = at(tree, "alpha", name, END)
        return np.asarray(alpha[:, KEYWORD] + alpha[:, NEXT])

    uniform = ONE_WAY if case == ONE_WAY_LEARNED else BOTH_WAYS
    return Claim(
        key=f"learned-{key}",
        sentence=f"With learned attention ({key.replace('-', ' ')}) the keyword and the position "
        "after it get more than half of the attention.",
        source=BEYOND,
        paper="not studied",
        statistic=lambda tree: near(tree, case),
        criterion=above(0.5),
        control_sentence="uniform attention",
        control=lambda tree: near(tree, uniform),
        measure="α_l* + α_l*+1 at the end",
        reason="in some seeds the state carries the keyword on before attention has found it; γ_L "
        "then is the largest as under uniform attention, and attention spreads over all positions "
        "from the keyword on.",
    )
