"""What diagnoses read of a watched run: courses of variables, and facts about the training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from attnscope.watched.course import Course, clock, course, variable

READ: dict[str, tuple[str, ...]] = {
    "loss": (),
    "relative_entropy": ("layer", "head"),
    "entropy": ("layer", "head"),
    "distance_to_uniform": ("layer", "head"),
    "sink_mass": ("layer", "head"),
    "head_distance": ("layer", "head"),
    "head_strength": ("layer", "head"),
    "logit_scale": ("layer", "head"),
    "induction": ("layer", "head"),
    "previous_token": ("layer", "head"),
    "rank_residual": ("layer",),
    "query_key_gradient_ratio": ("layer",),
    "gradient_norm": ("layer", "matrix"),
    "update_ratio": ("layer", "matrix"),
    "weight_norm": ("layer", "matrix"),
    "learning_speed": ("block",),
    "learning_rate": ("group",),
    "repetition_gain": (),
    "lexical_probe": ("row", "position"),
}
"""Variables that diagnoses read, with their axes."""


@dataclass(frozen=True, eq=False)
class Chart:
    """A watched run as diagnoses see it.

    Args:
        courses: variables by name. The loss is there with all its steps, NaN and infinite ones
            among them; of the others readings without any number are left out.
        spec: what the recorder wrote down about the model and its optimizer.
    """

    courses: Mapping[str, Course]
    spec: Mapping[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Course | None:
        """Return a variable if it has readings enough to say anything."""
        found = self.courses.get(name)
        return found if found is not None and found.enough else None

    def until(self, step: int) -> Chart:
        """Return the same run as it was known after a number of steps."""
        cut = {name: course.until(step) for name, course in self.courses.items()}
        return Chart({name: c for name, c in cut.items() if len(c.steps)}, self.spec)

    @property
    def steps(self) -> int:
        """The last step of which anything is known."""
        return max((int(c.steps[-1]) for c in self.courses.values() if len(c.steps)), default=0)

    @property
    def layers(self) -> int:
        """Number of attention layers."""
        return len(self.spec.get("layers", ()))


def chart_of(tree: xr.DataTree) -> Chart:
    """Return what diagnoses read of a run."""
    courses = {
        name: found
        for name, dims in READ.items()
        if name != "loss" and (found := course(tree, name, *dims)) is not None
    }
    losses = variable(tree, "loss")
    if losses is not None:
        steps = clock(losses)
        known = np.isfinite(steps)
        courses["loss"] = Course(steps[known].astype(int), losses.to_numpy().astype(float)[known])
    spec = tree.attrs.get("spec", "{}")
    return Chart(courses, json.loads(spec) if isinstance(spec, str) else dict(spec))
