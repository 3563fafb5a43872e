"""What is the matter with a watched model: six things, in words, each with its numbers."""

from __future__ import annotations

import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.diagnosis import (
    collapsed,
    diverging,
    knowledge,
    one_head,
    uniform,
    vanishing,
)

__all__ = ["DIAGNOSES", "diagnose", "undecided"]

DIAGNOSES = {
    "diverging": (diverging, "diverging"),
    "collapsed": (collapsed, "attention entropy collapsed"),
    "vanishing": (vanishing, "query/key gradients vanishing"),
    "uniform": (uniform, "attention still uniform"),
    "knowledge": (knowledge, "knowledge learned but attention not yet"),
    "one_head": (one_head, "one head doing all"),
}
"""Each by name, the gravest first: the module that finds it, and what it is called."""


def diagnose(tree: xr.DataTree) -> tuple[Diagnosis, ...]:
    """Return everything that a watched run shows, the gravest first."""
    found = (module.diagnose(tree) for module, _ in DIAGNOSES.values())
    return tuple(diagnosis for diagnosis in found if diagnosis is not None)


def undecided(tree: xr.DataTree) -> dict[str, tuple[str, ...]]:
    """Return what cannot be told, by what it is called, with the readings that are missing."""
    held = tree["observables"].data_vars if "observables" in tree.children else ()
    return {
        words: missing
        for module, words in DIAGNOSES.values()
        if (missing := tuple(name for name in module.READINGS if name not in held))
    }
