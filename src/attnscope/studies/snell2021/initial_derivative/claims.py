"""The claims of ``snell2021.initial_derivative``: eq 15, its erratum, its limit, what follows.

Statistics below are taken of one case or of all of them, and are a number for each seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy.special import softmax

from attnscope.claims import Claim, above, below, within
from attnscope.theory import snell2021
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.snell2021.initial_derivative.study import InitialDerivative

PERMUTATIONS, MIXTURE = "permutations", "mixture"
"""Cases whose count table says nothing about positions."""
WORDS = ("input", "output")
SHUFFLE = 0x5EED
"""Seed of the shuffled count table."""
EQ15, EQ55 = "section 4.1, eq 15", "appendix A.2, eq 54 and 55"
BEYOND = ("beyond the paper; section 4.1", "not given")
ONE = within(0.99, 1.01)
SLOPE = "slope of the measured derivative against the formula, over all pairs of words"
SHUFFLED = (True, "the entries of the formula shuffled")
UNIFORM = {
    PERMUTATIONS: ("the same words", "section 3.3, footnote 3", "provably cannot learn"),
    MIXTURE: ("one of two sets of words", "appendix A.3, Fig 8", "the same for every position"),
}
"""Which words are permuted, where the paper says what comes of it, and what."""


def claims_of(study: InitialDerivative) -> list[Claim]:
    """Return the statements about the derivative and the flow."""
    size, drawn = study.vocabulary, f"{study.length} of {study.types} words"
    at_wide, at_narrow = f"At d = {study.widths[-1]:,}", f"At d = {study.widths[0]:,}"
    widths = [width_case(width) for width in study.widths]
    narrow, common, wide = widths[0], widths[-2], widths[-1]

    def exponent(run: Readings, limit: Callable[[Readings], xr.DataArray]) -> np.ndarray:
        gaps = norm(initial(run.logits_velocity) - limit(run)).sel(case=widths)
        return np.polyfit(np.log(study.widths), np.log(gaps), 1)[0]

    def ratio(run: Readings, factor: float) -> xr.DataArray:
        found, expected = distances(run)
        return factor * (found / expected).sel(case=widths).mean("case", skipna=False)

    def gap(run: Readings, kind: str) -> xr.DataArray:
        known = run.theory.get(f"logits_{kind}")
        worst = abs(initial(run.logits_velocity) - known).max(WORDS, skipna=False)
        return (worst / abs(known).max(WORDS)).sel(case=widths).max("case", skipna=False)

    def relative(run: Readings, step: int) -> xr.DataArray:
        found, ahead = theta(run.of(wide)), run.of(wide).theory.theta_early
        measured, predicted = (each.isel(step=step, drop=True) for each in (found, ahead))
        return norm(measured - predicted) / norm(measured - initial(found))

    return [
        Claim(
            "logits",
            f"{at_wide} the logits start with 2(C - mean_o C).",
            lambda run, shuffled: slopes(run.of(wide), "logits_velocity", shuffled=shuffled),
            False,
            ONE,
            SHUFFLED,
            EQ55,
            "slope 1 as d → ∞",
            SLOPE,
        ),
        Claim(
            "printed",
            f"{at_wide} the probabilities start with 2(C - mean_o C), as printed.",
            lambda run, shuffled: slopes(run.of(wide), "theta_velocity", shuffled=shuffled),
            False,
            ONE,
            SHUFFLED,
            EQ15,
            "slope 1 as d → ∞",
            SLOPE,
            reason="2(C - mean_o C) is the derivative of the logits. The softmax starts uniform, "
            f"where its own derivative is 1/|O|, here 1/{size} = {1 / size:.4f}, which is the "
            "slope measured.",
        ),
        Claim(
            "corrected",
            f"{at_wide} the probabilities start with (2/|O|)(C - mean_o C).",
            lambda run, factor: slopes(run.of(wide), "theta_velocity", factor),
            1 / size,
            ONE,
            (1.0, "eq 15 as printed, without 1/|O|"),
            f"{EQ15}, corrected",
            "not printed",
            SLOPE,
        ),
        Claim(
            "falls",
            "The distance to the limit falls as 1/√d.",
            exponent,
            lambda run: run.theory.logits_limit,
            within(-0.6, -0.4),
            (lambda run: 2 * run.data.counts, "the distance to 2C, not centred, which is no limit"),
            "appendix A.2, eq 48 to 50",
            "exponent -0.5, by the central limit theorem",
            "exponent of d in ‖measured - limit‖, fitted over all widths",
        ),
        Claim(
            "error",
            "The distance is √(((|I| + |O| + 2)‖G₀‖² + 4(|O| - 1)‖S‖²/|O|²)/d), with no constant "
            "left open.",
            ratio,
            1.0,
            within(0.8, 1.25),
            (2.0, "the same formula for four times the width"),
            *BEYOND,
            "measured over predicted distance, mean over widths",
        ),
        Claim(
            "exact",
            "At every width the derivative is G W Wᵀ + e eᵀ G, with no limit taken.",
            gap,
            "exact",
            below(1e-9),
            ("limit", "the limit d → ∞ in its place"),
            *BEYOND,
            "largest error of any entry over the largest entry, over all widths",
        ),
        Claim(
            "early",
            "At first β^px grows as the corrected eq 15 says.",
            relative,
            1,
            below(0.2),
            (-1, "the same prediction at the end of the run"),
            f"{EQ15}, corrected",
            "β^px is likely to be larger if C is large",
            "‖θ - predicted‖ over ‖θ - θ(0)‖ at the first record after the start",
        ),
        Claim(
            "limit-flow",
            f"{at_wide} the flow at infinite width, known from the pairs alone, gives β^px at all "
            "times.",
            lambda run, kind: apart(run.of(wide), kind),
            "limit",
            below(0.02),
            ("early", "eq 15, corrected, to first order"),
            *BEYOND,
            "largest error of any θ at any time",
        ),
        Claim(
            "exact-flow",
            f"{at_narrow} the flow of the inner products alone gives β^px at all times.",
            lambda run, kind: apart(run.of(narrow), kind),
            "exact",
            below(1e-3),
            ("limit", "the flow at infinite width"),
            *BEYOND,
            "largest error of any θ at any time",
        ),
        Claim(
            "gold",
            f"With {drawn}, counts say that words can be learned, and β^px is largest at the gold "
            "word.",
            lambda run, case: final(run.of(case).gold_largest),
            common,
            above(0.99),
            (PERMUTATIONS, "permutations of the same words"),
            "sections 3.3 and 4.3",
            "learns every time",
            "share of target words whose gold word has the largest β^px at the end",
        ),
        *(
            Claim(
                case,
                f"With permutations of {words}, β^px stays uniform over positions.",
                lambda run, case: final(run.of(case).variation),
                case,
                below(0.02),
                (common, drawn),
                source,
                paper,
                "total variation distance of β^px from uniform at the end, mean over target words",
            )
            for case, (words, source, paper) in UNIFORM.items()
        ),
    ]


def width_case(width: int) -> str:
    """Return the name of the case at a width."""
    return f"width {width:,}"


def norm(table: xr.DataArray) -> xr.DataArray:
    """Return the Frobenius norm of tables of input words by output words."""
    return (table**2).sum(WORDS, skipna=False) ** 0.5


def slopes(run: Readings, name: str, factor: float = 1.0, shuffled: bool = False) -> xr.DataArray:
    """Return the slope of a derivative at time 0 against ``factor`` times 2(C - mean_o C).

    The entries of the formula can be shuffled, for one case.
    """
    measured, limit = initial(run.get(name)), factor * run.theory.logits_limit
    if shuffled:
        rngs = [np.random.default_rng([SHUFFLE, seed]) for seed in range(limit.sizes["seed"])]
        tables = zip(rngs, limit.to_numpy(), strict=True)
        limit = limit.copy(data=[rng.permutation(t.ravel()).reshape(t.shape) for rng, t in tables])
    words = [WORDS, WORDS]
    return xr.apply_ufunc(snell2021.slope, measured, limit, input_core_dims=words, vectorize=True)


def distances(run: Readings) -> tuple[xr.DataArray, xr.DataArray]:
    """Return how far the logits' derivative is from its limit, over the limit: found, expected."""
    limit = run.theory.logits_limit
    gap = norm(initial(run.logits_velocity) - limit)
    return gap / norm(limit), run.theory.expected_error / norm(limit)


def theta(run: Readings) -> xr.DataArray:
    """Return θ over time, for every input and output word."""
    return xr.apply_ufunc(softmax, run.logits, kwargs={"axis": -1})


def apart(run: Readings, kind: str) -> xr.DataArray:
    """Return the largest |θ - predicted θ| at any time for any two words.

    ``kind`` of prediction is ``"early"``, ``"limit"`` or ``"exact"``.
    """
    gap = abs(theta(run) - run.theory.get(f"theta_{kind}"))
    return gap.max(("step", *WORDS), skipna=False)
