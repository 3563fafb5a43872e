"""The claims of ``snell2021.keyword``: hypothesis 2, observation 3, and when each holds.

"≫" is read as a gap of more than a fifth of the range of the four quantities, "≈" as one of less
than a tenth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnscope.claims import Claim, Criterion, above, below
from attnscope.studies.snell2021._snell import first_step
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.snell2021.keyword.study import KeywordStudy

UNIFORM = ONE_WAY, BOTH_WAYS = "one way, uniform", "both ways, uniform"
LEARNED = "one way, learned", "both ways, learned"
CASES = (*UNIFORM, *LEARNED)
"""The direction of the LSTM, and its attention. The paper does not say which LSTM Fig 7 is of."""
PLACES = {
    "keyword": "γ at the keyword",
    "next": "γ one after",
    "mean": "mean γ",
    "last": "γ at the end",
}
ENOUGH = 0.75
"""Accuracy at which a run counts as having learned."""
WHEN = {
    "half": f"half the steps to {100 * ENOUGH:.0f} % accuracy",
    "twice": f"twice the steps to {100 * ENOUGH:.0f} % accuracy",
    "end": "the end of the run",
}
"""The moments at which readings are evaluated."""
HYPOTHESIS_2 = ("keyword", "next", "mean", "last")
"""γ_l* ≫ γ_l*+1 ≫ γ̄ ≈ γ_L, eq 24."""
OBSERVATION_3 = ("last", "next", "mean", "keyword")
"""γ_L ≫ γ_l*+1 ≫ γ̄ ≈ γ_l*, eq 25."""
KEYS = ("one-way", "both-ways")
Moment = tuple[str, str, tuple[str, ...]]
"""A case, when it is evaluated, and the order that the four quantities should have."""
AFTER, AT_END = (ONE_WAY, "twice", OBSERVATION_3), (ONE_WAY, "end", OBSERVATION_3)
TOO_EARLY = ((ONE_WAY, "half", OBSERVATION_3), WHEN["half"])
MUCH, ABOUT = above(0.2), below(0.1)
"""Shares of the range of the four quantities: what "≫" asks for, and what "≈" allows."""
BEYOND = "beyond the paper; section 6.1"
PLATEAUS = (
    "once the keyword is learned, a one-way LSTM keeps it, and every state from the keyword on is "
    "nearly the last one: "
)


def claims_of(study: KeywordStudy) -> list[Claim]:
    """Return hypothesis 2, observation 3, and when they hold."""
    after = f"One way, uniform attention, {WHEN['twice']}"
    end = f"One way, uniform attention, after {study.training.steps:,} steps"
    much, about = "γ_L ≫ γ_l*+1 ≫ γ̄, γ_l*.", "γ̄ ≈ γ_l*."
    crossing = (
        "γ_l* and γ̄ only cross: γ_l* is the larger before and again at the end, and both move fast "
        "where they do."
    )
    caught_up = f"{PLATEAUS}γ_l*+1 catches up with γ_L (table of the four quantities)."
    half = (
        f"{PLATEAUS}γ_l* rises towards γ_L, while γ̄ stays near half of it, since about half of the "
        "positions stand before the keyword (claim 'plateaus')."
    )
    return [
        *_early(KEYS[0], ONE_WAY),
        *_early(KEYS[1], BOTH_WAYS),
        _order("after", f"{after}: {much}", apart, AFTER, TOO_EARLY),
        _order("after-alike", f"{after}: {about}", alike, AFTER, TOO_EARLY, crossing),
        _order(
            "end",
            f"{end}: γ_L > γ_l*+1 > γ̄ and γ_l*; the last position has become the largest.",
            apart,
            AT_END,
            ((BOTH_WAYS, "end", OBSERVATION_3), "the same for an LSTM that reads both ways"),
            holds=above(0.0),
        ),
        _order("end-much", f"{end}: {much}", apart, AT_END, TOO_EARLY, caught_up),
        _order("end-alike", f"{end}: {about}", alike, AT_END, TOO_EARLY, half),
        Claim(
            "plateaus",
            "Why, one way: at the end γ̄ = r γ_L + (1 - r) γ̄_neg, two plateaus, with r the share "
            "of positions from the keyword on.",
            off_plateaus,
            2,
            ABOUT,
            # As if the keyword were known at every position, before it too.
            (1, "one plateau, r = 1"),
            BEYOND,
            "not studied",
            "distance of γ̄ from the two plateaus, over the range of the four",
        ),
        Claim(
            "both-ways",
            "Fig 7 is not that of an LSTM that reads both ways: there γ_l* ≫ γ_l*+1 to the end.",
            ahead,
            BOTH_WAYS,
            MUCH,
            (ONE_WAY, "an LSTM that reads one way"),
            BEYOND,
            "the kind of LSTM is not given",
            "γ_l* - γ_l*+1 at the end, over the range of the four",
        ),
        *(
            Claim(
                f"learned-{key}",
                f"With learned attention ({key.replace('-', ' ')}) the keyword and the position "
                "after it get more than half of the attention.",
                attended,
                case,
                above(0.5),
                (uniform, "uniform attention"),
                BEYOND,
                "not studied",
                "α_l* + α_l*+1 at the end",
                reason="in some seeds the state carries the keyword on before attention has found "
                "it; γ_L then is the largest as under uniform attention, and attention spreads "
                "over all positions from the keyword on.",
            )
            for key, case, uniform in zip(KEYS, LEARNED, UNIFORM, strict=True)
        ),
    ]


def _early(key: str, case: str) -> list[Claim]:
    given, control = (case, "half", HYPOTHESIS_2), ((case, "end", HYPOTHESIS_2), WHEN["end"])
    early = f"An LSTM that reads {key.replace('-', ' ')}, uniform attention, {WHEN['half']}"
    backwards = (
        "the order is the printed one where the number is above 0, but γ_l*+1 stands less than a "
        "fifth of the range above γ̄: the half of its state that reads backwards has not met the "
        "keyword."
    )
    much = f"{early}: γ_l* ≫ γ_l*+1 ≫ γ̄, γ_L."
    return [
        _order(f"early-{key}", much, apart, given, control, backwards),
        _order(f"early-alike-{key}", f"{early}: γ̄ ≈ γ_L.", alike, given, control),
    ]


def _order(
    key: str,
    sentence: str,
    of: Callable[[Readings, Moment], Any],
    given: Moment,
    control: tuple[Moment, str],
    reason: str = "",
    holds: Criterion | None = None,
) -> Claim:
    """Return a claim about gaps written as ≫, or about the two quantities written as ≈."""
    source = "section 6.1, observation 3, eq 25, Fig 7"
    paper = "true asymptotically"
    if given[2] == HYPOTHESIS_2:
        source = "section 6.1, hypothesis 2, eq 24, Fig 7"
        paper = "true when training starts"
    usual, measure = ABOUT, "gap of the two written as ≈, over the range of the four"
    if of is apart:
        usual, measure = MUCH, "smaller of the two gaps written as ≫, over the range of the four"
    return Claim(
        key, sentence, of, given, holds or usual, control, source, paper, measure, reason=reason
    )


def reading(run: Readings, name: str) -> xr.DataArray:
    """Return one of the readings; ``"γ"`` and ``"α"`` lie along ``place``."""
    if name not in ("γ", "α"):
        return run.reading.sel(reading=name, drop=True)
    four = run.reading.sel(reading=[f"{name} {place}" for place in PLACES])
    return four.rename(reading="place").assign_coords(place=list(PLACES))


def learned(run: Readings) -> xr.DataArray:
    """Return the first recorded step at which each seed has learned; NaN if it never has."""
    return first_step(reading(run, "accuracy"), ENOUGH)


def at(run: Readings, found: xr.DataArray, when: str) -> xr.DataArray:
    """Return a reading of each seed at the record point nearest to a moment.

    It is NaN where the moment was not reached.
    """
    steps, first = run.reading["step"], learned(run)
    last = float(steps[-1])
    goal = {"half": first / 2, "twice": 2 * first, "end": xr.full_like(first, last)}[when]
    return found.isel(step=abs(steps - goal.fillna(0)).argmin("step")).where(goal <= last)


def shares(run: Readings, case: str, when: str) -> xr.DataArray:
    """Return the four log odds at a moment over their range, by seed."""
    gamma = at(run.of(case), reading(run.of(case), "γ"), when)
    return gamma / (gamma.max("place") - gamma.min("place"))


def apart(run: Readings, moment: Moment) -> np.ndarray:
    """Return the smaller of the two gaps that the paper writes as ≫, by seed.

    The last two of an order are written as ≈, so the second lies above the larger of them.
    """
    case, when, order = moment
    first, second, *rest = shares(run, case, when).sel(place=list(order)).transpose("place", ...)
    return np.minimum(first - second, second - np.maximum(*rest))


def alike(run: Readings, moment: Moment) -> xr.DataArray:
    """Return how far apart the two are that the paper writes as ≈, by seed."""
    case, when, order = moment
    share = shares(run, case, when)
    return abs(share.sel(place=order[2]) - share.sel(place=order[3]))


def off_plateaus(run: Readings, plateaus: int) -> xr.DataArray:
    """Return the distance of γ̄ at the end from what one or two plateaus give, by seed."""
    one_way = run.of(ONE_WAY)
    gamma = final(reading(one_way, "γ"))
    predicted = one_way.theory.gamma_mean if plateaus == 2 else reading(one_way, "γ last")
    gap = abs(final(predicted) - gamma.sel(place="mean"))
    return gap / (gamma.max("place") - gamma.min("place"))


def ahead(run: Readings, case: str) -> xr.DataArray:
    """Return by how much the keyword leads the position after it at the end, by seed."""
    share = shares(run, case, "end")
    return share.sel(place="keyword") - share.sel(place="next")


def attended(run: Readings, case: str) -> xr.DataArray:
    """Return the attention that the keyword and the position after it get at the end, by seed."""
    alpha = final(reading(run.of(case), "α"))
    return alpha.sel(place=["keyword", "next"]).sum("place", skipna=False)
