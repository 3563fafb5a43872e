"""What is the matter with somebody's model, as a record: a finding without a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    """

    name: str
    sentence: str
    since_step: int
    evidence: Mapping[str, float] = field(default_factory=dict)
    advice: str = ""
    layer: int | None = None
    head: int | None = None
