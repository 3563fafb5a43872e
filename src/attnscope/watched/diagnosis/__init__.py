"""What is the matter with a watched model, in words, each with its numbers and one cause."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart, chart_of
from attnscope.watched.diagnosis import (
    collapsed,
    dead_heads,
    diverging,
    duplicate_heads,
    frozen,
    induction,
    knowledge,
    near_collapse,
    never_learns,
    no_loss,
    one_head,
    rank_collapse,
    sink,
    uniform,
    vanishing,
)
from attnscope.watched.diagnosis.causes import ranked
from attnscope.watched.diagnosis.training import training_of

__all__ = ["DIAGNOSES", "diagnose", "diagnose_chart", "undecided"]

DIAGNOSES = {
    "no_loss": (no_loss, "no finite loss"),
    "diverging": (diverging, "diverging"),
    "spike": (diverging, "a loss spike that was not recovered from"),
    "rank_collapse": (rank_collapse, "rank collapse"),
    "never_learns": (never_learns, "a layer that never learns"),
    "frozen": (frozen, "frozen queries and keys"),
    "collapsed": (collapsed, "attention entropy collapsed"),
    "near_collapse": (near_collapse, "attention entropy on its way to collapse"),
    "vanishing": (vanishing, "query/key gradients vanishing"),
    "sink": (sink, "an attention sink"),
    "dead_heads": (dead_heads, "dead heads"),
    "duplicate_heads": (duplicate_heads, "duplicate heads"),
    "one_head": (one_head, "one head doing all"),
    "knowledge": (knowledge, "knowledge learned but attention not yet"),
    "uniform": (uniform, "attention still uniform"),
    "induction": (induction, "induction heads forming"),
}
"""Each by name, the gravest first: the module that finds it, and what it is called."""


def diagnose(tree: xr.DataTree) -> tuple[Diagnosis, ...]:
    """Return everything that a watched run shows, the gravest first, one card for each cause."""
    return diagnose_chart(chart_of(tree))


def diagnose_chart(chart: Chart) -> tuple[Diagnosis, ...]:
    """Return the same for a run that is given as courses, such as the first part of one."""
    modules = dict.fromkeys(module for module, _ in DIAGNOSES.values())
    found = [diagnosis for module in modules if (diagnosis := module.diagnose(chart)) is not None]
    names = {name: words for name, (_, words) in DIAGNOSES.items()}
    return ranked(found, training_of(chart), names, _slack(chart))


def undecided(tree: xr.DataTree) -> dict[str, tuple[str, ...]]:
    """Return what cannot be told, by what it is called, with the readings that are missing."""
    held = set(tree["observables"].data_vars) if "observables" in tree.children else set()
    losses = chart_of(tree).courses.get("loss")
    missing = {name: name for name in {n for m, _ in DIAGNOSES.values() for n in m.READINGS} - held}
    if losses is not None and not np.isfinite(losses.values).any():
        missing["loss"] = "a finite loss"
    return {
        words: lost
        for name, (module, words) in DIAGNOSES.items()
        # That there is no finite loss can be told without one.
        if (lost := tuple(missing[r] for r in module.READINGS if r in missing))
        and not (name == "no_loss" and lost == ("a finite loss",))
    }


def _slack(chart: Chart) -> int:
    """Return three readings of attention, in steps."""
    course = chart.courses.get("relative_entropy") or chart.courses.get("weight_norm")
    if course is None or len(course.steps) < 2:
        return 0
    return 3 * int(np.median(np.diff(course.steps)))
