"""The runs of ``li2023.value``: what W^V is trained on, from where, with what penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from attnscope.models.topic_objective import LossKind

if TYPE_CHECKING:
    from attnscope.studies.li2023.value.study import Value

ZERO_SMALL = "population, small λ, from zero"
ZERO = "population, no λ, from zero"
NOISE = "population, no λ, from noise"
OTHER_TAU = "population, no λ, from zero, other τ"
ENTROPY = "population, no λ, cross-entropy"
SAMPLED = "sampled documents"
SGD = "SGD on fresh documents"


def penalised(penalty: float) -> str:
    """Return the name of the run on the population from noise at one λ."""
    return f"population, λ = {penalty:g}"


class Case(NamedTuple):
    """One way to train W^V: λ, topics of a document, spread of the start, documents and loss.

    Documents are all of them in the limit, a fixed sample, or new ones at every step.
    """

    penalty: float
    tau: int
    start: float
    data: Literal["population", "sampled", "stream"] = "population"
    kind: LossKind = "squared"


def cases(study: Value) -> dict[str, Case]:
    """Return all runs by name."""
    tau, start, least = study.tau, study.start, min(study.penalties)
    return {
        **{penalised(penalty): Case(penalty, tau, start) for penalty in study.penalties},
        ZERO_SMALL: Case(study.small, tau, 0.0),
        ZERO: Case(0.0, tau, 0.0),
        NOISE: Case(0.0, tau, start),
        OTHER_TAU: Case(0.0, study.other_tau, 0.0),
        ENTROPY: Case(0.0, tau, start, kind="cross-entropy"),
        SAMPLED: Case(least, tau, start, "sampled"),
        SGD: Case(least, tau, start, "stream"),
    }
