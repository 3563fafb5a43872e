"""One cause for a disease: what follows from something graver is told on its card.

A flat softmax has tiny gradients, tiny gradients keep attention uniform, and a loss that exploded
takes all of these along. Each alone would ask for another cure, and some would do harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.diagnosis.training import Training

ATTENTION = frozenset(
    {
        "collapsed",
        "near_collapse",
        "rank_collapse",
        "vanishing",
        "frozen",
        "never_learns",
        "sink",
        "dead_heads",
        "duplicate_heads",
        "one_head",
        "knowledge",
        "uniform",
    }
)
FLAT = frozenset({"vanishing", "one_head", "knowledge", "uniform"})
EXPLAINS: Mapping[str, frozenset[str]] = {
    "diverging": ATTENTION,
    "spike": ATTENTION,
    "rank_collapse": FLAT | {"frozen", "never_learns", "sink", "duplicate_heads", "dead_heads"},
    "never_learns": FLAT | {"frozen", "dead_heads", "sink"},
    "frozen": FLAT,
    "collapsed": frozenset(
        {"near_collapse", "diverging", "vanishing", "sink", "one_head", "duplicate_heads"}
    ),
    "sink": frozenset({"collapsed", "vanishing", "duplicate_heads", "one_head"}),
    "vanishing": frozenset({"one_head", "knowledge", "uniform"}),
    "duplicate_heads": frozenset({"dead_heads"}),
    "knowledge": frozenset({"uniform"}),
}
"""What a disease can bring about; the order in which causes are tried is that of the keys."""
WHOLE = frozenset({"diverging", "spike", "rank_collapse", "frozen", "knowledge"})
"""What is not confined to the layers where it shows."""
ALL_MASS = 0.8
"""With four fifths of attention on one position entropy is low because of the sink; with less,
heads that look at one word each are likely to meet at a position."""


def ranked(
    found: Sequence[Diagnosis], training: Training, names: Mapping[str, str], slack: int
) -> tuple[Diagnosis, ...]:
    """Return causes only, each with the names of what follows from it, the gravest first.

    Args:
        found: all that was found.
        training: what is known about the optimizer.
        names: what diagnoses are called.
        slack: steps by which readings may date a cause later than what follows from it.
    """
    held = {diagnosis.name: diagnosis for diagnosis in found}
    followers: dict[str, list[Diagnosis]] = {}
    for name in _order(held, training, slack):
        cause = held.get(name)
        if cause is None:
            continue
        for symptom in list(held.values()):
            if symptom.name in EXPLAINS.get(name, ()) and _follows(cause, symptom, slack):
                followers.setdefault(name, []).append(symptom)
                followers[name] += followers.pop(symptom.name, [])
                del held[symptom.name]
    return tuple(_told(each, followers.get(each.name, ()), names) for each in held.values())


def _order(held: Mapping[str, Diagnosis], training: Training, slack: int) -> list[str]:
    order = list(EXPLAINS)
    sink, collapsed = held.get("sink"), held.get("collapsed")
    if sink is not None:
        mass = sink.evidence.get("attention to one position, head in the middle", 0.0)
        if mass >= ALL_MASS:
            order.remove("sink")
            order.insert(order.index("collapsed"), "sink")
    for name in ("diverging", "spike"):
        risen = held.get(name)
        if risen is None or collapsed is None:
            continue
        scheduled = training.jump(risen.since_step) or training.grown(risen.since_step) > 2
        if collapsed.since_step + slack < risen.since_step and not scheduled:
            # Entropy fell first, and no schedule explains it: the logits drove the loss.
            order.remove("collapsed")
            order.insert(0, "collapsed")
    return order


def _follows(cause: Diagnosis, symptom: Diagnosis, slack: int) -> bool:
    if cause.name in ("diverging", "spike"):
        return symptom.since_step + slack >= cause.since_step
    if cause.name in WHOLE or not symptom.layers or not cause.layers:
        return True
    return bool(set(symptom.layers) & set(cause.layers))


def _told(cause: Diagnosis, followers: Sequence[Diagnosis], names: Mapping[str, str]) -> Diagnosis:
    if not followers:
        return cause
    said = "; ".join(f"{names[each.name]} (since step {each.since_step:,})" for each in followers)
    evidence = dict(cause.evidence)
    for each in followers:
        evidence |= {key: value for key, value in each.evidence.items() if key not in evidence}
    return replace(
        cause,
        sentence=f"{cause.sentence} It brings along: {said}.",
        evidence=evidence,
        symptoms=tuple(each.name for each in followers),
    )
