"""The claims of ``snell2021.optimal_attention``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below
from attnscope.studies.old import Claim
from attnscope.studies.snell2021._optimal_readings import (
    EQUATION_30,
    LEARNED,
    UNIFORM,
    curve,
)
from attnscope.theory import snell2021

if TYPE_CHECKING:
    from attnscope.studies.snell2021.optimal_attention import BestAttention

A1 = "appendix A.1"
BEYOND = f"beyond the paper; {A1}"


def claims(study: BestAttention) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _counterexample(),
        _two_outputs(study),
        _three_outputs(study),
        _certified(),
        _agreement(),
        _rare(),
        _attention_follows(),
        _uniform_knows(),
        _knowledge_first(),
    )


def _counterexample() -> Claim:
    def largest(outputs: int) -> np.ndarray:
        best = snell2021.optimal_attention(EQUATION_30[:, :outputs], 0)
        return np.asarray(best.alpha[best.beta.argmax()])

    return Claim(
        key="counterexample",
        sentence="In the example of eq 30 the position with the largest β gets no optimal "
        "attention.",
        source=f"{A1}, eq 30 and 31",
        paper="0, with α_opt = (0, 0.5, 0.5)",
        statistic=lambda tree: largest(3),
        criterion=below(1e-6),
        control_sentence="the same logits without the third output",
        control=lambda tree: largest(2),
        measure="α_opt where β is largest",
    )


def _two_outputs(study: BestAttention) -> Claim:
    def share(tree: xr.DataTree, outputs: int) -> np.ndarray:
        neglected = tree["theory/neglected"].to_numpy()[:, :, outputs]
        return np.asarray(neglected.max(axis=1))

    return Claim(
        key="two-outputs",
        sentence="With two outputs the largest β always gets attention, by eq 12.",
        source=f"{A1}: more than two output vocabs; eq 12",
        paper="never neglected",
        statistic=lambda tree: share(tree, 0),
        criterion=below(1e-9),
        control_sentence=f"|O| = {study.outputs[-1]}",
        control=lambda tree: share(tree, -1),
        measure="share of problems with random logits that neglect it, largest of all spreads",
    )


def _three_outputs(study: BestAttention) -> Claim:
    def share(tree: xr.DataTree, outputs: int) -> np.ndarray:
        return tree["theory/neglected"].to_numpy()[:, -1, outputs]

    return Claim(
        key="more-outputs",
        sentence=f"With {study.outputs[1]} outputs or more and random logits it does happen, not "
        "only in a constructed example.",
        source=BEYOND,
        paper="one example",
        statistic=lambda tree: np.min(
            [share(tree, at) for at in range(1, len(study.outputs))], axis=0
        ),
        criterion=above(0.0),
        control_sentence="two outputs",
        control=lambda tree: share(tree, 0),
        measure=f"share of problems that neglect the largest β at spread {study.spreads[-1]:g}, "
        "least of all |O| above 2",
    )


def _certified() -> Claim:
    def worst(tree: xr.DataTree, name: str) -> np.ndarray:
        return np.asarray(curve(tree, name, LEARNED).max(axis=1))

    return Claim(
        key="certified",
        sentence="Optimal attention is found for every word, with a certificate.",
        source=f"{A1}, eq 35 and 36",
        paper="by gradient descent, since g is convex",
        statistic=lambda tree: worst(tree, "gap"),
        criterion=below(1.01e-8),
        control_sentence="uniform attention",
        control=lambda tree: worst(tree, "gap_uniform"),
        measure="largest Frank-Wolfe gap of any word at any step",
    )


def _agreement() -> Claim:
    def end(tree: xr.DataTree, name: str) -> np.ndarray:
        return curve(tree, name, LEARNED)[:, -1]

    return Claim(
        key="agreement",
        sentence="In a trained model β agrees with the optimal attention.",
        source=A1,
        paper="A(α_opt, β) = 0.53 on Multi30k",
        statistic=lambda tree: end(tree, "optimal_beta"),
        criterion=above(0.5),
        control_sentence="β in random order",
        control=lambda tree: end(tree, "optimal_shuffled"),
        measure="A(α_opt, β) at the end, over the words of unseen sequences",
    )


def _rare() -> Claim:
    def share(tree: xr.DataTree) -> np.ndarray:
        return np.asarray(curve(tree, "neglected", LEARNED).max(axis=1))

    return Claim(
        key="rare",
        sentence="In training it rarely happens that the largest β gets no optimal attention.",
        source=f"{A1}: such pathological examples rarely occur",
        paper="rarely, not counted",
        statistic=share,
        criterion=below(0.1),
        control_sentence="eq 30 with noise of 0.1 on every logit",
        control=lambda tree: tree["theory/near"].to_numpy(),
        measure="share of words, largest of all record points",
    )


def _attention_follows() -> Claim:
    def at(tree: xr.DataTree, step: int) -> np.ndarray:
        return curve(tree, "optimal_attention", LEARNED)[:, step]

    return Claim(
        key="follows",
        sentence="The attention that is learned goes where the optimal attention is.",
        source=BEYOND,
        paper="not measured",
        statistic=lambda tree: at(tree, -1),
        criterion=above(0.5),
        control_sentence="before training",
        control=lambda tree: at(tree, 0),
        measure="A(α_opt, α) at the end",
    )


def _uniform_knows() -> Claim:
    def at(tree: xr.DataTree, step: int) -> np.ndarray:
        return curve(tree, "gold_optimal", UNIFORM)[:, step]

    return Claim(
        key="uniform-knows",
        sentence="Trained under frozen uniform attention, the model knows words well enough for "
        "the optimal attention to be at the right one.",
        source=f"section 3.2; {A1}",
        paper="not measured",
        statistic=lambda tree: at(tree, -1),
        criterion=above(0.5),
        control_sentence="before training",
        control=lambda tree: at(tree, 0),
        measure="α_opt at the gold position at the end, mean over words",
    )


def _knowledge_first() -> Claim:
    def reaches(tree: xr.DataTree, name: str) -> np.ndarray:
        values, steps = curve(tree, name, LEARNED), tree["observables/time"].to_numpy()
        above_half = values >= 0.5
        first = steps[above_half.argmax(axis=1)]
        return np.where(above_half.any(axis=1), first, np.nan)

    return Claim(
        key="knowledge-first",
        sentence="Where attention should go is known long before it goes there.",
        source=f"abstract: attention is learned because words are known; {A1}",
        paper="two stages",
        statistic=lambda tree: reaches(tree, "gold_attention") / reaches(tree, "gold_optimal"),
        criterion=above(2.0),
        control_sentence="β in place of the attention",
        control=lambda tree: reaches(tree, "gold_beta") / reaches(tree, "gold_optimal"),
        measure="step where α at the gold position reaches a half over the same of α_opt",
    )
