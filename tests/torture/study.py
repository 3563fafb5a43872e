"""A study of half a second with everything: checkpoints, theory, claims, a figure, a report."""

from __future__ import annotations

from dataclasses import dataclass

from attnscope.engines import Descent, Flow
from toy_study import Bowl


@dataclass(frozen=True)
class Slope(Bowl):
    """Descent into two bowls, read at every step."""

    seeds: int = 1
    training: Flow | Descent = Descent(lr=0.1, epochs=300)
    points: int = 301
