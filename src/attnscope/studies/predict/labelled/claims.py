"""What is claimed: predictions beat what knows less, and are no worse than a second seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from attnscope.claims import Claim, above
from attnscope.studies.predict._timing import when_claims
from attnscope.studies.predict.labelled.compared import (
    BEST_SHUFFLE,
    CHANCE,
    CHOSEN_NAME,
    ONE_MORE,
    RARITY,
    SEED,
)
from attnscope.studies.predict.labelled.models import SNELL
from attnscope.studies.predict.labelled.sets import role, short
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.predict.labelled.study import Labelled

AHEAD = 5.0
"""Points by which a prediction has to be ahead of what knows less."""
REACH = 1.1
"""The part of a second seed's agreement that is to be reached, over all judged sets."""
FIRST = 30.0
"""Percent of texts whose first word is to be named, over all judged sets."""
WHOSE = (
    "Where attention goes to words that say little by themselves, or differs so much from seed to "
    "seed that there is little to predict, data alone cannot name it."
)
ALIKE = (
    "Where trainings come to the same attention whatever the seed (a bag of words has one score a "
    "word; GloVe gives all runs the same start), a second one is a ceiling that nothing exceeds."
)


def claims_of(study: Labelled) -> list[Claim]:
    """Return the claims: one for each set and model, and three over all judged sets; and when."""
    found = [
        Claim(
            "beats",
            "On {case} the prediction beats chance, rarity alone and the best of five "
            f"shuffles of the labels by more than {AHEAD:g} points.",
            beats,
            CHOSEN_NAME,
            above(AHEAD),
            (ONE_MORE, "the same predictor, with labels shuffled once more"),
            measure="A(α, v) less the largest of the three (percentage points, held-out texts)",
            reason=WHOSE,
            per=study.cases,
        )
    ]
    for model in study.models:
        judged = tuple(
            f"{short(name)}, {model}" for name in study.sets if role(name) == "judged on"
        )
        if not judged or study.seeds < 2:
            continue
        key = "snell" if model == SNELL else "lu"
        sets = "set" if len(judged) == 1 else "sets"
        where = f"over {len(judged)} {sets} that nothing was chosen on, {model}"
        found += [
            Claim(
                f"second-seed-{key}",
                "From the data alone attention is predicted no worse than by a second training, "
                f"{where}.",
                over_seed,
                (CHOSEN_NAME, judged, 1.0),
                above(0.0),
                ((RARITY, judged, 1.0), "rarity in the place of the prediction"),
                measure="mean A(α, v) less that of another seed (percentage points)",
                each=False,
                reason=ALIKE,
            ),
            Claim(
                f"reach-{key}",
                f"It is {REACH:g} times as good as a second training, {where}.",
                over_seed,
                (CHOSEN_NAME, judged, REACH),
                above(0.0),
                ((RARITY, judged, REACH), "rarity in the place of the prediction"),
                measure=f"mean A(α, v) less {REACH:g} times that of another seed (points)",
                each=False,
                reason=ALIKE,
            ),
            Claim(
                f"first-{key}",
                f"The first word of the prediction is the one attended to most in {FIRST:g} % of "
                f"texts, {where}.",
                named_first,
                (CHOSEN_NAME, judged),
                above(FIRST),
                ((RARITY, judged), "rarity in the place of the prediction"),
                measure="mean share of texts (percent)",
                each=False,
                reason=WHOSE,
            ),
        ]
    return [*found, *when_claims(study.trained)]


def beats(run: Readings, predictor: str) -> xr.DataArray:
    """Return by how many points a predictor beats the best of those that know less."""
    agreed = run.theory.agreement.sel(measure="top 5 %")
    against = agreed.sel(predictor=[CHANCE, RARITY, BEST_SHUFFLE]).max("predictor")
    return agreed.sel(predictor=predictor) - against


def over_seed(run: Readings, of: tuple[str, tuple[str, ...], float]) -> xr.DataArray:
    """Return the mean of a predictor over sets less so many times that of another seed."""
    predictor, cases, times = of
    agreed = run.theory.agreement.sel(measure="top 5 %", case=list(cases)).mean("case")
    return agreed.sel(predictor=predictor) - times * agreed.sel(predictor=SEED)


def named_first(run: Readings, of: tuple[str, tuple[str, ...]]) -> xr.DataArray:
    """Return the mean share of texts whose most attended word a predictor names."""
    predictor, cases = of
    agreed = run.theory.agreement.sel(measure="first", case=list(cases), predictor=predictor)
    return agreed.mean("case")
