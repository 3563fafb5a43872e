"""The claims of ``snell2021.optimal_attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from attnscope.claims import Claim, above, below, call
from attnscope.studies.snell2021._snell import first_step
from attnscope.theory import snell2021
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.snell2021.optimal_attention.study import OptimalAttentionStudy

A1 = "appendix A.1"
BEYOND = f"beyond the paper; {A1}"


def claims_of(study: OptimalAttentionStudy) -> list[Claim]:
    """Return the statements about optimal attention."""
    return [
        Claim(
            "counterexample",
            "In the example of eq 30 the position with the largest β gets no optimal attention.",
            lambda run, outputs: at_largest(outputs),
            3,
            below(1e-6),
            (2, "the same logits without the third output"),
            f"{A1}, eq 30 and 31",
            "0, with α_opt = (0, 0.5, 0.5)",
            "α_opt where β is largest",
        ),
        Claim(
            "two-outputs",
            "With two outputs the largest β always gets attention, by eq 12.",
            lambda run, at: run.theory.neglected.isel(outputs=at).max("spread"),
            0,
            below(1e-9),
            (-1, f"|O| = {study.outputs[-1]}"),
            f"{A1}: more than two output vocabs; eq 12",
            "never neglected",
            "share of problems with random logits that neglect it, largest of all spreads",
        ),
        Claim(
            "more-outputs",
            f"With {study.outputs[1]} outputs or more and random logits it does happen, not "
            "only in a constructed example.",
            lambda run, at: run.theory.neglected.isel(spread=-1, outputs=at).min("outputs"),
            slice(1, None),
            above(0.0),
            (slice(1), "two outputs"),
            BEYOND,
            "one example",
            f"share of problems that neglect the largest β at spread {study.spreads[-1]:g}, "
            "least of all |O| above 2",
        ),
        Claim(
            "certified",
            "Optimal attention is found for every word, with a certificate.",
            lambda run, name: curve(run, name).max("step", skipna=False),
            "gap",
            below(1.01e-8),
            ("gap_uniform", "uniform attention"),
            f"{A1}, eq 35 and 36",
            "by gradient descent, since g is convex",
            "largest Frank-Wolfe gap of any word at any step",
        ),
        Claim(
            "agreement",
            "In a trained model β agrees with the optimal attention.",
            lambda run, name: final(curve(run, name)),
            "optimal_beta",
            above(0.5),
            ("optimal_shuffled", "β in random order"),
            A1,
            "A(α_opt, β) = 0.53 on Multi30k",
            "A(α_opt, β) at the end, over the words of unseen sequences",
        ),
        Claim(
            "rare",
            "In training it rarely happens that the largest β gets no optimal attention.",
            call,
            lambda run: curve(run, "neglected").max("step", skipna=False),
            below(0.1),
            (lambda run: run.theory.near, "eq 30 with noise of 0.1 on every logit"),
            f"{A1}: such pathological examples rarely occur",
            "rarely, not counted",
            "share of words, largest of all record points",
        ),
        Claim(
            "follows",
            "The attention that is learned goes where the optimal attention is.",
            lambda run, when: when(curve(run, "optimal_attention")),
            final,
            above(0.5),
            (initial, "before training"),
            BEYOND,
            "not measured",
            "A(α_opt, α) at the end",
        ),
        Claim(
            "uniform-knows",
            "Trained under frozen uniform attention, the model knows words well enough for the "
            "optimal attention to be at the right one.",
            lambda run, when: when(curve(run, "gold_optimal", "uniform")),
            final,
            above(0.5),
            (initial, "before training"),
            f"section 3.2; {A1}",
            "not measured",
            "α_opt at the gold position at the end, mean over words",
        ),
        Claim(
            "knowledge-first",
            "Where attention should go is known long before it goes there.",
            later,
            "gold_attention",
            above(2.0),
            ("gold_beta", "β in place of the attention"),
            f"abstract: attention is learned because words are known; {A1}",
            "two stages",
            "step where α at the gold position reaches a half over the same of α_opt",
        ),
    ]


def at_largest(outputs: int) -> float:
    """Return α_opt where β is largest, in eq 30 with some of its outputs."""
    best = snell2021.optimal_attention(snell2021.EQUATION_30[:, :outputs], 0)
    return float(best.alpha[best.beta.argmax()])


def later(run: Readings, name: str) -> xr.DataArray:
    """Return the step where a quantity reaches a half over that of α_opt at the gold position."""
    return first_step(curve(run, name), 0.5) / first_step(curve(run, "gold_optimal"), 0.5)


def curve(run: Readings, quantity: str, case: str = "learned") -> xr.DataArray:
    """Return a quantity along training, by seed."""
    return run.of(case).optimal.sel(quantity=quantity)
