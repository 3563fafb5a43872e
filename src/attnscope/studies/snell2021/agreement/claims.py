"""The claims of the agreement study: sections 3 and 5, A.6, and what the data say before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above
from attnscope.studies.snell2021.agreement.evidence import COMPARED, LEARNED, evidence
from attnscope.studies.snell2021.agreement.paper import (
    NAMES,
    published,
)
from attnscope.studies.snell2021.agreement.predictions import PERMUTATIONS
from attnscope.theory.snell2021.before_training import COUNTS, IBM
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement.study import Agreement

OVER = 10.0
"""Points over the random baseline that count as agreement."""
AHEAD = 5.0
"""Standard deviations by which the data say more than pairs put together at random."""
ONE_RUN = "This is α of run A alone, as in the paper; the table each-run has all normal runs."
PROXY = (
    "Undecided, without a value, where the proxy's validation loss fell by less than "
    f"{LEARNED:.0%}: β^px is then its random start, and agreement with it says nothing. "
    "--proxy-epochs gives it more training; the table symbols says how far it came."
)
NO_TABLE = "no table of this set"
AGREEING = {
    "alpha_uf": "Attention looks where a model that never had attention knows the answer",
    "uf_px": "What is known under uniform attention is what a bag of words knows",
    "delta_uf": "Words that matter by their gradient are those known under uniform attention",
    "alpha_beta": "Attention looks where another normal run knows the answer",
}
UNTRAINED = {"uf_px": "the proxy", "alpha_beta": "the other run"}
"""Whose β the control has, where it is not the uniform run's."""
BEFORE = {COUNTS: "The count table C", IBM: "IBM Model 1 (one iteration)"}
FREQUENT = (
    "C is largest for words that are frequent in every text; IBM Model 1 divides by how often a "
    "word occurs."
)


def claims_of(study: Agreement) -> list[Claim]:
    """Return every statement with its criterion and its control, in the paper's convention."""
    frozen = published(study.data, 10)
    return [
        *(
            Claim(
                name.replace("_", "-"),
                f"{sentence}: A{NAMES[name]} is more than {OVER:g} points over its random "
                "baseline.",
                over_baseline,
                (name, True),
                above(OVER),
                ((name, False), f"β of {UNTRAINED.get(name, 'the uniform run')} before training"),
                f"section {'5.1' if name == 'delta_uf' else '3.2'}, Tables 2 and 5",
                _printed(study.data, 5, name),
                f"A{NAMES[name]} - Â (percentage points, validation)",
                reason=PROXY
                if name == "uf_px"
                else ONE_RUN
                if COMPARED[name].fixed == "alpha"
                else "",
            )
            for name, sentence in AGREEING.items()
        ),
        Claim(
            "frozen",
            "Attention is not learned without knowledge: trained while all else is frozen, it "
            "agrees less with α than β^uf does.",
            under_uniform,
            "frozen",
            above(0.0),
            ("B", "in place of the frozen run another normal one, which learns"),
            "A.6, Table 10",
            NO_TABLE
            if frozen is None
            else "{alpha_uf:g} and {alpha_fr:g} %".format(**frozen.agreement),
            "A(α, β^uf) - A(α, α^fr) (percentage points, validation)",
            reason=ONE_RUN,
        ),
        Claim(
            "lag",
            "Knowledge comes first, attention second: in every normal run attention is half "
            "way to its concentration after β is half way to its maximum.",
            lag,
            "normal",
            above(0.0),
            ("frozen", "the run with all but attention frozen, where knowledge never comes"),
            "sections 1 and 3: knowledge drives attention early on",
            "no number",
            "steps by which 1 - H(α)/log L is half way after max_l β",
            reason="Concentration counts any focus, on the right word or not; the table lag says "
            "when it comes in the frozen run, which knows nothing.",
        ),
        Claim(
            "saliency-sign",
            "A helpful word has a positive saliency, Δ_l = -∂Loss/∂g_l: it ranks words as "
            "β^uf does.",
            saliency_rank,
            1.0,
            above(0.0),
            (-1.0, "the sign that the released code comes to, negated twice"),
            "section 5.1, Table 3",
            _printed(study.data, 3, "delta_uf"),
            "Kendall's τ(Δ, β^uf) × 100, validation",
        ),
        *(
            Claim(
                f"before-training-{name}",
                f"{words} of the training data says before training where attention will look: "
                f"A(α, v) is more than {AHEAD:g} standard deviations over that of pairs put "
                "together at random.",
                over_random_pairs,
                (name, True),
                above(AHEAD),
                ((name, False), "one more way of putting pairs together at random"),
                "beyond the paper; section 4, eq 15 to 19",
                "not measured",
                f"A(α, v), in standard deviations over {PERMUTATIONS - 1} random pairings "
                "(validation)",
                reason=FREQUENT if name == COUNTS else "",
            )
            for name, words in BEFORE.items()
        ),
    ]


def over_baseline(run: Readings, of: tuple[str, bool]) -> float:
    """Return the points of an agreement over its baseline, trained or before training.

    NaN for β^px of a proxy that has hardly trained.
    """
    seen, (name, trained) = evidence(run), of
    entry = seen.table()[name]
    if name == "uf_px" and trained and seen.proxy_untrained:
        return float("nan")
    value = entry.value if trained else seen.agree(*seen.pair(name, trained=False))
    return value - entry.baseline


def under_uniform(run: Readings, attention: str) -> float:
    """Return by how much the attention of a run agrees less with α than β^uf does."""
    seen = evidence(run)
    best = max(seen.agree(seen.alpha, at) for at in seen.rows("alpha", attention))
    return seen.table()["alpha_uf"].value - best


def lag(run: Readings, case: str) -> xr.DataArray:
    """Return by how many steps attention is half way after knowledge, run by run."""
    seen = evidence(run)
    known, focused = seen.halves(*(seen.normal if case == "normal" else (case,)))
    return focused - known


def saliency_rank(run: Readings, sign: float) -> float:
    """Return Kendall's τ × 100 of saliency, as it is or negated, and β^uf."""
    seen = evidence(run)
    saliency, beta = seen.pair("delta_uf")
    return seen.tau(sign * saliency, beta)


def over_random_pairs(run: Readings, of: tuple[str, bool]) -> float:
    """Return standard deviations of a prediction, or of random pairs, over other random pairs."""
    seen, (name, paired) = evidence(run), of
    *others, last = seen.permuted(name)
    found = seen.agree(seen.alpha, seen.prediction(name)) if paired else last
    return float((found - np.mean(others)) / np.std(others, ddof=1))


def _printed(data: str, table: int, name: str) -> str:
    row = published(data, table)
    if row is None:
        return NO_TABLE
    over = f", {row.baseline:g} at random" if row.baseline else ""
    return f"{row.agreement[name]:g} %{over} (Table {row.table})"
