"""What is the matter with somebody's model, as a record: a finding without a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Diagnosis:
    """Something that a watched model has, in words.

    Args:
        name: the same for all runs, such as ``"uniform"``.
        sentence: what is the case, where and how much.
        since_step: the step from which on it has been so.
        evidence: the numbers it rests on, by what they are.
        advice: what the papers say helps, and which ones.
        layer: number of the layer where it shows most, if it has a place.
        head: number of the head, likewise.
        kind: a fault, a stage that trainings pass through, or a good sign.
        layers: numbers of all layers where it shows; empty if it has no place.
        symptoms: names of what it explains, which then has no card of its own.
    """

    name: str
    sentence: str
    since_step: int
    evidence: Mapping[str, float] = field(default_factory=dict)
    advice: str = ""
    layer: int | None = None
    head: int | None = None
    kind: Literal["fault", "stage", "good"] = "fault"
    layers: tuple[int, ...] = ()
    symptoms: tuple[str, ...] = ()
