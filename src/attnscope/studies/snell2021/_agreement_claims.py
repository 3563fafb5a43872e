"""The claims of ``snell2021.agreement``: sections 3 and 5, A.6, and what the data say before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above
from attnscope.studies.old import Claim
from attnscope.studies.snell2021._agreement_evidence import evidence
from attnscope.studies.snell2021._agreement_paper import (
    ALPHA_BETA,
    ALPHA_FR,
    ALPHA_UF,
    DELTA_UF,
    NAMES,
    UF_PX,
    PublishedRow,
    published,
    published_frozen,
)
from attnscope.studies.snell2021._agreement_predictions import COUNTED, COUNTS, IBM, PERMUTATIONS

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement

OVER = 10.0
"""Points over the random baseline that count as agreement."""
AHEAD = 5.0
"""Standard deviations by which the data say more than pairs put together at random."""
ONE_RUN = "This is α of run A alone, as in the paper; the table each-run has all normal runs."
SENTENCES = {
    ALPHA_UF: "Attention looks where a model that never had attention knows the answer",
    UF_PX: "What is known under uniform attention is what a bag of words knows",
    DELTA_UF: "Words that matter by their gradient are those known under uniform attention",
    ALPHA_BETA: "Attention looks where another normal run knows the answer",
}
SOURCES = {
    ALPHA_UF: "section 3.2, Tables 2 and 5",
    UF_PX: "section 3.2, Tables 2 and 5",
    DELTA_UF: "section 5.1, Tables 2 and 5",
    ALPHA_BETA: "section 3.2, Tables 2 and 5",
}
UNTRAINED = {
    ALPHA_UF: "β of the uniform run before training",
    UF_PX: "β of the proxy before training",
    DELTA_UF: "β of the uniform run before training",
    ALPHA_BETA: "β of the other run before training",
}


def claims(study: Agreement) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control, in the paper's convention."""
    return (
        *(_over(study, name) for name in SENTENCES),
        _frozen(study),
        _lag(),
        _sign(study),
        *(_before(name) for name in COUNTED),
    )


def _over(study: Agreement, name: str) -> Claim:
    def points(tree: xr.DataTree) -> np.ndarray:
        entry = evidence(tree).table()[name]
        return np.array([entry.value - entry.baseline])

    def untrained(tree: xr.DataTree) -> np.ndarray:
        seen = evidence(tree)
        return np.array([seen.agree(*seen.pair(name, trained=False)) - seen.table()[name].baseline])

    return Claim(
        key=name.replace("_", "-"),
        sentence=f"{SENTENCES[name]}: A{NAMES[name]} is more than {OVER:g} points over its random "
        "baseline.",
        source=SOURCES[name],
        paper=_printed(published(study.data), name),
        statistic=points,
        criterion=above(OVER),
        control_sentence=UNTRAINED[name],
        control=untrained,
        measure=f"A{NAMES[name]} - Â (percentage points, validation)",
        reason=ONE_RUN if name in (ALPHA_UF, ALPHA_BETA) else "",
    )


def _frozen(study: Agreement) -> Claim:
    def gap(tree: xr.DataTree) -> np.ndarray:
        found = evidence(tree).table()
        return np.array([found[ALPHA_UF].value - found[ALPHA_FR].value])

    def beside_normal(tree: xr.DataTree) -> np.ndarray:
        seen = evidence(tree)
        attention = seen.runs.rows("alpha", seen.runs.others[0])
        best = max(seen.agree(seen.runs.alpha, at) for at in attention)
        return np.array([seen.table()[ALPHA_UF].value - best])

    row = published_frozen(study.data)
    printed = "no table of this set"
    if row is not None:
        printed = f"{row.agreement[ALPHA_UF]:g} and {row.agreement[ALPHA_FR]:g} %"
    return Claim(
        key="frozen",
        sentence="Attention is not learned without knowledge: trained while all else is frozen, it "
        "agrees less with α than β^uf does.",
        source="A.6, Table 10",
        paper=printed,
        statistic=gap,
        criterion=above(0.0),
        control_sentence="in place of the frozen run another normal one, which learns",
        control=beside_normal,
        measure="A(α, β^uf) - A(α, α^fr) (percentage points, validation)",
        reason=ONE_RUN,
    )


def _lag() -> Claim:
    return Claim(
        key="lag",
        sentence="Knowledge comes first, attention second: in every normal run attention is half "
        "way to its concentration after β is half way to its maximum.",
        source="sections 1 and 3: knowledge drives attention early on",
        paper="no number",
        statistic=lambda tree: evidence(tree).lags("normal"),
        criterion=above(0.0),
        control_sentence="the run with all but attention frozen, where knowledge never comes",
        control=lambda tree: evidence(tree).lags("frozen"),
        measure="steps by which 1 - H(α)/log L is half way after max_l β",
        reason="Concentration counts any focus, on the right word or not; the table lag says "
        "when it comes in the frozen run, which knows nothing.",
    )


def _sign(study: Agreement) -> Claim:
    def tau(tree: xr.DataTree, sign: float) -> np.ndarray:
        seen = evidence(tree)
        saliency, beta = seen.pair(DELTA_UF)
        return np.array([seen.tau(sign * saliency, beta)])

    return Claim(
        key="saliency-sign",
        sentence="A helpful word has a positive saliency, Δ_l = -∂Loss/∂g_l: it ranks words as "
        "β^uf does.",
        source="section 5.1, Table 3",
        paper=_printed(published(study.data, by="tau"), DELTA_UF),
        statistic=lambda tree: tau(tree, 1.0),
        criterion=above(0.0),
        control_sentence="the sign that the released code comes to, negated twice",
        control=lambda tree: tau(tree, -1.0),
        measure="Kendall's τ(Δ, β^uf) × 100, validation",
    )


def _before(name: str) -> Claim:
    def deviations(tree: xr.DataTree, control: bool) -> np.ndarray:
        seen = evidence(tree)
        *others, last = seen.permuted(name)
        found = last if control else seen.agree(seen.runs.alpha, seen.prediction(name))
        return np.array([(found - np.mean(others)) / np.std(others, ddof=1)])

    words = {COUNTS: "The count table C", IBM: "IBM Model 1 (one iteration)"}[name]
    return Claim(
        key=f"before-training-{name}",
        sentence=f"{words} of the training data says before training where attention will look: "
        f"A(α, v) is more than {AHEAD:g} standard deviations over that of pairs put together at "
        "random.",
        source="beyond the paper; section 4, eq 15 to 19",
        paper="not measured",
        statistic=lambda tree: deviations(tree, control=False),
        criterion=above(AHEAD),
        control_sentence="one more way of putting pairs together at random",
        control=lambda tree: deviations(tree, control=True),
        measure=f"A(α, v), in standard deviations over {PERMUTATIONS - 1} random pairings "
        "(validation)",
        reason="C is largest for words that are frequent in every text; IBM Model 1 divides by how "
        "often a word occurs."
        if name == COUNTS
        else "",
    )


def _printed(row: PublishedRow | None, name: str) -> str:
    if row is None or name not in row.agreement:
        return "no table of this set"
    over = f", {row.baseline:g} at random" if row.baseline else ""
    return f"{row.agreement[name]:g} %{over} (Table {row.table})"
