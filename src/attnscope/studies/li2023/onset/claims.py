"""The claims of ``li2023.onset``, all beyond the paper: it shows one onset and explains none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below, within
from attnscope.studies.li2023.onset.readings import UNIFORM, case_name, error, onset
from attnscope.theory import li2023
from attnscope.trajectory import Readings, initial

if TYPE_CHECKING:
    from attnscope.studies.li2023.onset.study import OnsetStudy

BEYOND = "beyond the paper; Fig 4"
ONE_ONSET = "one onset, near step 400"
LARGEST = "largest relative error of the onset, over flow and learning rates"
AHEAD = below(0.03)
"""How close a predicted onset must be, here and wherever else it is predicted."""
COARSE = (
    f"Without a value: record points are too far apart, more than {li2023.COARSE:.0%} of the "
    "onset; --points sets more."
)
EARLY = 0.05
"""Share of the growth exponent at the first onset; before it, turning does not matter."""


def claims(study: OnsetStudy) -> list[Claim]:
    """Return the statements about the onset."""
    rate, noise = max(study.rates), sorted(study.noises)[len(study.noises) // 2]
    descent, flow = case_name(rate, noise), case_name(None, noise)
    flows = [case_name(None, each) for each in study.noises]
    d_a = study.task().vocabulary
    share = math.sqrt(2 / d_a)
    spread = (
        "The formula puts the mean over starts in place of the actual one, and the logarithm of "
        f"|x - y|² has a standard deviation of √(2/d_a) = {share:.2g} over seeds at d_a = {d_a}: "
        f"that moves the onset by {share:.2g}/2σ. With the actual start the spread over seeds is "
        "gone (see the linear system in the tables). "
        f"{COARSE}"
    )
    families = {
        each: [case_name(rate, each) for rate in (None, *study.rates)] for each in study.noises
    }

    def delayed(run: Readings, case: str) -> xr.DataArray:
        found, ahead = onset(run.score_norm), run.theory.onset_ahead
        late = found.sel(case=descent) - found.sel(case=flow)
        return (ahead.sel(case=case) - ahead.sel(case=flow)) / late

    def deviation(run: Readings, grows: bool) -> xr.DataArray:
        norms = run.score_norm.sel(case=flows)
        ahead = run.theory.score_norm_ahead.sel(case=flows)
        gaps = xr.apply_ufunc(np.log, (ahead if grows else initial(ahead)) / norms)
        before = norms["time"] <= onset(norms)
        largest: xr.DataArray = abs(gaps).where(before, 0.0).max(("case", "step"), skipna=False)
        return largest

    def turned(run: Readings, early: float) -> list[float]:
        found, uniform = onset(run.score_norm.sel(case=flows)), run.of(UNIFORM)
        values = []
        for seed in found["seed"]:
            sigma = uniform.sigma.sel(seed=seed, rank="largest")
            times, sides = sigma["time_probe"].to_numpy(), (uniform.left, uniform.right)
            grown = li2023.growth_exponent(times, sigma)
            first, last = (
                float(found.sel(seed=seed, case=case_name(None, pick(study.noises))))
                for pick in (max, min)
            )
            if np.isnan(first + last):
                values.append(np.nan)
                continue
            begin = np.searchsorted(grown, early * np.interp(first, times, grown))
            end = min(np.searchsorted(times, last), len(times) - 1)
            pairs = [side.sel(seed=seed).isel(probe=[begin, end]).to_numpy() for side in sides]
            values.append(1 - min(abs(float(one @ other)) for one, other in pairs))
        return values

    return [
        *(
            Claim(
                f"ahead-{each:g}",
                f"From W^K and W^Q of size {each:g}, the linear system driven by a run without "
                "attention says when attention starts, by flow and at every learning rate.",
                linear_error,
                (cases, 1.0),
                AHEAD,
                (
                    (cases, 0.1),
                    "the same prediction for a tenth of the noise, or the end of the run if that "
                    "is earlier",
                ),
                BEYOND,
                ONE_ONSET,
                LARGEST,
                reason=COARSE,
            )
            for each, cases in families.items()
        ),
        *(
            Claim(
                f"closed-{each:g}",
                f"At noise {each:g} the onset is where (ε² d_a/2) exp(2∫σ dt) reaches 1, without "
                "knowing the initial matrices.",
                largest_error,
                (cases, "closed"),
                AHEAD,
                ((cases, "constant"), "σ held at its value at time 0"),
                BEYOND,
                ONE_ONSET,
                LARGEST,
                reason="the formula follows one direction of G alone and takes it to turn slowly; "
                f"the average with the whole of G is the claim expected-{each:g}. {spread}",
            )
            for each, cases in families.items()
        ),
        *(
            Claim(
                f"expected-{each:g}",
                f"At noise {each:g} the onset is where ε² d_a ‖(Φ Φᵀ)_{{key, query}}‖₂ reaches 1, "
                "Φ the propagator of the linear system, without knowing the initial matrices.",
                largest_error,
                (cases, "expected"),
                AHEAD,
                ((cases, "constant"), "σ held at its value at time 0"),
                BEYOND,
                ONE_ONSET,
                LARGEST,
                reason=spread,
            )
            for each, cases in families.items()
        ),
        Claim(
            "delay",
            f"A learning rate of {rate:g} delays the onset against the flow by as much as the "
            f"steps of the linear system do (noise {noise:g}).",
            delayed,
            descent,
            within(0.8, 1.25),
            (flow, "the flow of the linear system in place of its steps"),
            BEYOND,
            "not studied",
            "predicted over measured delay",
        ),
        Claim(
            "norms",
            "Up to the onset the linear system gives ‖W^Kᵀ W^Q‖₂ at all times, over all noises.",
            deviation,
            True,
            below(0.25),
            (False, "no growth: the initial norm at all times"),
            BEYOND,
            "not studied",
            "largest |ln(predicted / measured)|, by flow",
        ),
        Claim(
            "turning",
            "The leading singular pair of G hardly turns while attention grows, as the closed form "
            "assumes.",
            turned,
            EARLY,
            below(0.05),
            (0.0, "from time 0 on, when W^V is still noise"),
            BEYOND,
            "not studied",
            f"1 - |cos| between the pair after {EARLY:.0%} of the growth to the first onset and "
            "the pair at the last, the larger of keys and queries",
        ),
        Claim(
            "loud",
            f"At noise {study.loud:g} there is no onset: ‖W^Kᵀ W^Q‖₂ is above 1 from the "
            "beginning.",
            lambda run, noise: initial(run.of(case_name(None, noise)).score_norm),
            study.loud,
            above(1.0),
            (max(study.noises), f"noise {max(study.noises):g}"),
            BEYOND,
            "near-zero start, its size not given",
            "initial ‖W^Kᵀ W^Q‖₂",
        ),
    ]


def largest_error(run: Readings, given: tuple[list[str], str]) -> xr.DataArray:
    """Return the largest error of a prediction over cases."""
    cases, kind = given
    return error(run, kind).sel(case=cases).max("case", skipna=False)


def linear_error(run: Readings, given: tuple[list[str], float]) -> xr.DataArray:
    """Return the largest error of the linear system over cases, with their noise times a factor."""
    cases, factor = given
    # A linear system: a tenth of the noise is a hundredth of the product, at all times.
    norms = run.theory.score_norm_ahead.sel(case=cases) * factor**2
    ahead = onset(norms)
    if factor < 1:
        ahead = ahead.fillna(norms["time"][-1])
    return abs(ahead / onset(run.score_norm.sel(case=cases)) - 1).max("case", skipna=False)
