"""When attention came, held against what was said: what two studies of predictions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below
from attnscope.errors import AttnscopeError
from attnscope.prediction.pace import (
    MODELS,
    MOMENTS,
    NOTHING,
    Plan,
    Told,
    calibrated,
    is_fitted,
    known,
    moments,
    said_by_system,
)
from attnscope.probes.evidence.bags import LabelledBags
from attnscope.probes.intervals import mean_interval
from attnscope.report import Cell, Table
from attnscope.trajectory import Readings

WITHIN = 0.2
"""Part of the measured step by which a prediction may be off."""
SAID, LOW, HIGH, CONSTANT, SYSTEM = "prediction", "low", "high", "constant", "system"
SHUFFLED, SHUFFLED_SYSTEM = "shuffled labels", "shuffled system"
TELLERS = (SAID, LOW, HIGH, CONSTANT, SYSTEM, SHUFFLED, SHUFFLED_SYSTEM)
SHUFFLE = 0x7E11
CONTROLS = {
    "SGD": ((SHUFFLED, 1.0), "the same prediction with shuffled labels"),
    "Adam": ((SAID, 2.0), "the same prediction for half the learning rate"),
}
"""Under Adam the rate sets most of the time, and shuffled labels come to nearly the same step."""
EMPIRICAL = (
    "For the LSTM the law is empirical: its times are taken as proportional to those of a bag of "
    "words, and half way of a run depends on where its attention ends, which a bag does not know."
)


@dataclass(frozen=True, eq=False)
class Trained:
    """A case of a study.

    Args:
        case: its name.
        name: of the set.
        role: ``"chosen on"`` or ``"judged on"``.
        plan: how it is trained.
    """

    case: str
    name: str
    role: str
    plan: Plan


def when_dataset(
    trained: Sequence[Trained],
    bags: Callable[[str], LabelledBags],
    curve: Callable[[str], xr.DataArray],
) -> xr.Dataset:
    """Return what was said and what was seen, in steps.

    Args:
        trained: the cases, in the order of the study.
        bags: the training texts of a set.
        curve: the concentration of attention of a case, along seed and step.

    Returns:
        ``told`` along case, teller and moment; ``came`` along case, seed and moment.
    """
    told = [[_all_told(one, bags(one.name), moment) for moment in MOMENTS] for one in trained]
    came = []
    for one in trained:
        found = curve(one.case).transpose("seed", "step")
        steps = found["step"].to_numpy().astype(float)
        rows = [moments(steps, row.astype(float)) for row in found.to_numpy()]
        came.append([[row[moment] for moment in MOMENTS] for row in rows])
    return xr.Dataset(
        {
            "told": (
                ("case", "teller", "moment"),
                np.array(told).transpose(0, 2, 1),
                {"unit": "steps", "meaning": "when attention starts and is half way, as said"},
            ),
            "came": (
                ("case", "seed", "moment"),
                np.array(came),
                {"unit": "steps", "meaning": "when attention started and was half way"},
            ),
        }
    )


def _all_told(one: Trained, bags: LabelledBags, moment: str) -> list[float]:
    own, mixed = (_told(one, system, moment) for system in _systems(one.plan, bags))
    return [own.step, own.low, own.high, own.constant, own.system, mixed.step, mixed.system]


def _told(one: Trained, system: dict[str, float], moment: str) -> Told:
    if not known(one.plan):
        return NOTHING
    try:
        return calibrated(system[moment], one.plan, moment)  # type: ignore[arg-type]
    except AttnscopeError:  # Nothing was fitted yet: what the system says is all there is.
        return Told(system[moment], np.nan, np.nan, np.nan, np.nan)


_SEEN: dict[tuple[int, Plan], tuple[LabelledBags, list[dict[str, float]]]] = {}


def _systems(plan: Plan, bags: LabelledBags) -> list[dict[str, float]]:
    """Return the steps of the system with the labels as they are, and with shuffled ones."""
    key = (id(bags), plan)
    if key not in _SEEN:
        if not known(plan):
            nothing: dict[str, float] = dict.fromkeys(MOMENTS, float("nan"))
            return [nothing, nothing]
        mixed = np.random.default_rng(SHUFFLE).permutation(bags.labels)
        both = [dict(said_by_system(each, plan)) for each in (bags, bags.relabelled(mixed))]
        # The bags are kept as well, so that their id stays theirs.
        _SEEN[key] = (bags, both)  # type: ignore[assignment]
    return _SEEN[key][1]


def when_claims(trained: Sequence[Trained]) -> list[Claim]:
    """Return the claims: half way within a fifth, set by set and over all that were judged."""
    found = []
    for optimizer, control in CONTROLS.items():
        theory = tuple(
            one.case
            for one in trained
            if (one.plan.model, one.plan.optimizer) == (MODELS[0], optimizer)
        )
        if theory:
            found.append(
                Claim(
                    "half-way",
                    "On {case} attention is half way at the step that was said, within "
                    f"{WITHIN:.0%}, in every training.",
                    lambda run, of: off(run, *of),
                    (SAID, 1.0),
                    below(WITHIN),
                    control,
                    "the two-variable system; docs/predict.md",
                    measure="step said over step measured, less 1, without its sign",
                    per=theory,
                )
            )
    # Of a training that no factor was fitted for, such as the LSTM under Adam, nothing is said.
    plans = dict.fromkeys(one.plan for one in trained if known(one.plan) and is_fitted(one.plan))
    for plan in plans:
        own = [one for one in trained if one.plan == plan and one.role == "judged on"]
        if len(own) < 2:
            continue
        cases, key = tuple(one.case for one in own), plan.name.lower().replace(", ", "-")
        key = key.replace(" ", "")
        where = f"over {len(own)} sets that nothing was fitted on, {plan.name}"
        reason = "" if plan.model == MODELS[0] else EMPIRICAL
        found += [
            Claim(
                f"half-way-{key}",
                f"Half way is said within {WITHIN:.0%} on every set, {where}.",
                lambda run, of: off_over(run, *of).max("case"),
                (cases, SAID),
                below(WITHIN),
                ((cases, CONSTANT), "the same step for every set, the mean of those fitted on"),
                measure="largest error over sets, of the mean over seeds",
                each=False,
                reason=reason,
            ),
            Claim(
                f"nearer-{key}",
                f"The prediction of half way is nearer than one step for all sets, {where}.",
                lambda run, of: _worse(run, of),
                (cases, SAID),
                above(0.0),
                ((cases, SHUFFLED), "the same prediction with shuffled labels"),
                measure="mean |log(said/measured)| of the constant less that of the prediction",
                each=False,
                reason=reason,
            ),
        ]
    return found


def off(run: Readings, teller: str, times: float = 1.0) -> xr.DataArray:
    """Return by which part so many times what a teller said of half way is off, for each seed."""
    if "told" not in run.theory:
        return _nothing(run)
    told = times * run.theory.told.isel(teller=TELLERS.index(teller), moment=1)
    found: xr.DataArray = abs(told / run.theory.came.isel(moment=1) - 1)
    return found


def _nothing(run: Readings) -> xr.DataArray:
    """Return NaN for each case and seed: an older run, in which nothing was said of times."""
    found: xr.DataArray = run.theory.agreement.isel(predictor=0, measure=0, drop=True) * np.nan
    return found


def off_over(run: Readings, cases: tuple[str, ...], teller: str) -> xr.DataArray:
    """Return the same for some cases."""
    return off(run, teller).sel(case=list(cases))


def _worse(run: Readings, of: tuple[tuple[str, ...], str]) -> xr.DataArray:
    cases, teller = of
    if "told" not in run.theory:
        return _nothing(run).sel(case=list(cases)).mean("case", skipna=False)
    came = run.theory.came.isel(moment=1).sel(case=list(cases))
    told = run.theory.told.isel(moment=1).sel(case=list(cases))
    errors = []
    for who in (CONSTANT, teller):
        ratio: xr.DataArray = told.isel(teller=TELLERS.index(who)) / came
        away: xr.DataArray = xr.apply_ufunc(lambda values: np.abs(np.log(values)), ratio)
        errors.append(away.mean("case"))
    found: xr.DataArray = errors[0] - errors[1]
    return found


def when_table(trained: Sequence[Trained], run: Readings) -> Table:
    """Steps said and measured, case by case."""
    rows: list[tuple[Cell, ...]] = []
    for one in trained if "told" in run.theory else ():
        told = run.theory.told.sel(case=one.case).isel(seed=0).to_numpy()
        came = run.theory.came.sel(case=one.case).transpose("moment", "seed").to_numpy()
        cells: list[Cell] = [one.case, one.role]
        for at, seen in enumerate(came):
            said, low, high = (float(told[TELLERS.index(who), at]) for who in (SAID, LOW, HIGH))
            mean, least, most = (float(value) for value in mean_interval(seen))
            cells += [
                _whole(said),
                _between(low, high),
                _whole(mean),
                _between(least, most),
                None if np.isnan(said / mean) else round(100 * (said / mean - 1), 1),
            ]
        cells.append(_whole(float(told[TELLERS.index(SHUFFLED), 1])))
        rows.append(tuple(cells))
    columns = (
        *("set and training", "used to"),
        *("start, said (step)", "its interval", "start, measured", "interval of it", "off (%)"),
        *("half way, said (step)", "interval of that", "half way, measured", "and of this"),
        *("half way off (%)", "with shuffled labels"),
    )
    title = "When attention starts and is half way: said from the texts, and measured"
    return Table("when", title, columns, tuple(rows))


def _whole(value: float) -> Cell:
    return None if np.isnan(value) else round(value)


def _between(low: float, high: float) -> str:
    return "" if np.isnan(low + high) else f"{max(low, 0):.0f} to {high:.0f}"
