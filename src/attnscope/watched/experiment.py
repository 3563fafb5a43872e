"""What reads a watched run: its figures, tables, attention maps and diagnosis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.experiment import Experiment
from attnscope.experiment.one_axis import happenings, one_axis, speaking_table, worth_while
from attnscope.report.attention_maps import AttentionMaps
from attnscope.report.figure import Figure
from attnscope.report.overview import Overview
from attnscope.report.page import Table
from attnscope.trajectory import Readings
from attnscope.trajectory.manifest import WATCHED
from attnscope.watched.course import course
from attnscope.watched.diagnosis import DIAGNOSES, diagnose, undecided
from attnscope.watched.diagnosis.uniform import UNIFORM
from attnscope.watched.figures import figures_of, layer_name
from attnscope.watched.maps import maps_of
from attnscope.watched.overview import overview_of
from attnscope.watched.theories import curves_of

LONG = 12
"""A table with more rows is folded on the page."""


@dataclass(frozen=True)
class Watched(Experiment):
    """A model of somebody's own, watched while it was trained.

    It has no claims: a claim needs a control, and there is one run.
    """

    seeds: int = 1
    spec: dict[str, Any] = field(default_factory=dict)
    """What was asked for and what was found, as the recorder wrote it down."""

    @classmethod
    def name(cls) -> str:
        """Return what the manifest of every such run says."""
        return WATCHED

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Self:
        """Take whatever the recorder wrote; an older or newer one may have said other things."""
        return cls(spec=dict(spec))

    def to_json(self) -> dict[str, Any]:
        """Return what the recorder wrote."""
        return dict(self.spec)

    def departures(self) -> str:
        """Return nothing: there is no paper to depart from."""
        return ""

    @property
    def cases(self) -> tuple[str, ...]:
        """The only one."""
        return ("watched",)

    def title(self) -> str:
        """Name the model."""
        model = self.spec.get("model")
        return f"{model}, watched" if model else "A watched model"

    def introduction(self) -> str:
        """Say what the model is, where it attends and how often it was read."""
        parts = []
        if "parameters" in self.spec:
            parts.append(f"{self.spec['parameters']:,} parameters")
        if layers := self.spec.get("layers"):
            heads = sorted({int(n) for n in self.spec.get("heads", []) if n})
            each = f" of {' or '.join(map(str, heads))} heads" if heads else ""
            parts.append(f"{len(layers)} attention layer{'s' if len(layers) > 1 else ''}{each}")
        if "every" in self.spec:
            every = self.spec["every"]
            parts.append("read at every step" if every == 1 else f"read every {every} steps")
        if "probe" in self.spec:
            parts.append(
                "on a fixed probe batch" if self.spec["probe"] else "on the batches of training"
            )
        text = ", ".join(parts)
        return f"{text[0].upper()}{text[1:]}." if text else ""

    def again(self) -> tuple[str, str]:
        """Return the lines that watch a model; the model and its data are their owner's."""
        given = [f"every={self.spec['every']}"] if "every" in self.spec else []
        given += ["probe=batch"] if self.spec.get("probe") else []
        options = "".join(f", {option}" for option in given)
        return "", (
            "import attnscope\n\n"
            f'with attnscope.watch(model, "runs/mine"{options}) as scope:\n'
            "    for step, batch in enumerate(loader):\n"
            "        ...  # your training step\n"
            "        scope.step(loss)\n\n"
            'attnscope.write_report(attnscope.open_run("runs/mine"))\n'
        )

    def diagnose(self, run: Readings) -> tuple[Sequence[Diagnosis], str]:
        """Say what is the matter with the model, and what could not be told."""
        found, lost = diagnose(run.tree), undecided(run.tree)
        names = [words for _, words in DIAGNOSES.values()]
        head = "" if found else "Nothing of what was looked for is the case. "
        note = f"{head}Looked for: {', '.join(names)}."
        if lost:
            said = "; ".join(f"{words} ({', '.join(parts)})" for words, parts in lost.items())
            note += f" Could not be told, since it was not recorded: {said}."
        return found, note

    def figures(self, run: Readings) -> list[Figure]:
        """Draw whatever was recorded; several theories on one axis where they were asked for."""
        made, curves = figures_of(run.tree, self.spec, diagnose(run.tree)), curves_of(run.tree)
        return [*made[:1], one_axis(curves), *made[1:]] if worth_while(curves) else made

    def overview(self, run: Readings) -> Overview:
        """Return the loss, what began when, and maps of whatever was recorded."""
        return overview_of(run.tree, self.spec, diagnose(run.tree))

    def maps(self, run: Readings) -> list[AttentionMaps]:
        """Return the attention maps of every layer, if they were recorded."""
        return maps_of(run.tree, self.spec)

    def tables(self, run: Readings) -> list[Table]:
        """Tabulate when attention began, what theories announced, and single numbers."""
        curves = curves_of(run.tree)
        spoken = speaking_table(happenings(curves)) if worth_while(curves) else None
        made = (spoken, _onset(run.tree, self.spec), _ends(run.tree))
        return [table for table in made if table is not None]


def _onset(tree: xr.DataTree, spec: dict[str, Any]) -> Table | None:
    found = course(tree, "distance_to_uniform", "layer", "head")
    if found is None:
        return None
    rows = []
    for layer in range(found.values.shape[1]):
        for head in range(found.values.shape[2]):
            values = found.values[:, layer, head]
            if np.isnan(values).all():
                continue
            begun = np.flatnonzero(values > UNIFORM)
            onset = int(found.steps[begun[0]]) if begun.size else "not yet"
            rows.append((layer_name(spec, layer), head, onset, float(values[0]), float(values[-1])))
    return Table(
        "onset",
        f"Onset of attention: the first step with more than {UNIFORM} from uniform attention",
        ("layer", "head", "onset (step)", "distance at first", "distance at the end"),
        tuple(rows),
        folded=len(rows) > LONG,
    )


def _ends(tree: xr.DataTree) -> Table | None:
    """Return first and last value of every single number that was recorded."""
    if "observables" not in tree.children:
        return None
    rows = []
    for name, array in tree["observables"].to_dataset().data_vars.items():
        found = course(tree, str(name))
        if found is not None and array.ndim == 2:
            values = found.values
            last = int(found.steps[-1])
            rows.append((str(name), float(values[0]), float(values.min()), float(values[-1]), last))
    if not rows:
        return None
    columns = ("variable", "at first", "lowest", "at the end", "last step")
    return Table("single-numbers", "Single numbers", columns, tuple(rows))
