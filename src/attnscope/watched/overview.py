"""From a watched run to the first screen of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.report.attention_maps import thinned
from attnscope.report.overview import (
    COLUMNS,
    FEWEST_COLUMNS,
    MAPS_BYTES,
    Event,
    Overview,
    ReadingMap,
)
from attnscope.watched.course import course, course_of, has_axes
from attnscope.watched.diagnosis import DIAGNOSES
from attnscope.watched.diagnosis.places import listed
from attnscope.watched.diagnosis.uniform import UNIFORM
from attnscope.watched.figures import LOGARITHMIC, loss_lines

FIRST = ("relative_entropy", "distance_to_uniform", "entropy", "max_attention")
"""The first of these that was recorded is shown before another is chosen."""


def overview_of(
    tree: xr.DataTree, spec: Mapping[str, Any], diagnoses: Sequence[Diagnosis]
) -> Overview:
    """Return the losses, what began when, and every reading that has layers or blocks."""
    if "observables" not in tree.children:
        return Overview()
    held = tree["observables"].to_dataset()
    losses = {
        name: held[name].isel(run=0)
        for name in ("loss", "probe_loss")
        if name in held.data_vars and held[name].ndim == 2
    }
    maps = []
    for name, array in held.data_vars.items():
        if "run" in array.dims and (made := map_of(str(name), array, spec)) is not None:
            maps.append(made)
    events = (*_begun(diagnoses), *_onsets(tree))
    return Overview(tuple(loss_lines(losses)), events, fitting(in_order(maps)))


def in_order(maps: Sequence[ReadingMap]) -> list[ReadingMap]:
    """Return maps with what is shown first in front."""
    order = {name: place for place, name in enumerate(FIRST)}
    return sorted(maps, key=lambda part: order.get(part.name, len(order)))


def _begun(diagnoses: Sequence[Diagnosis]) -> list[Event]:
    """Return what the diagnosis says; what has been so from the start has no beginning to mark."""
    return [
        Event(
            diagnosis.since_step,
            DIAGNOSES[diagnosis.name][1],
            diagnosis.kind,
            f"diagnosis-{diagnosis.name}",
        )
        for diagnosis in diagnoses
        if diagnosis.since_step > 0
    ]


def _onsets(tree: xr.DataTree) -> list[Event]:
    """Return the first step at which a head of a layer left uniform attention, layers together."""
    found = course(tree, "distance_to_uniform", "layer", "head")
    if found is None:
        return []
    layers = found.values.shape[1]
    begun: dict[int, list[int]] = {}
    for layer in range(layers):
        with np.errstate(invalid="ignore"):
            above = np.flatnonzero((found.values[:, layer] > UNIFORM).any(axis=1))
        if above.size and above[0] > 0:  # Attention that began before the start has no onset.
            begun.setdefault(int(found.steps[above[0]]), []).append(layer)
    return [
        Event(step, f"attention begins in {listed(numbers, 'layer', layers)}")
        for step, numbers in begun.items()
    ]


def map_of(
    name: str, array: xr.DataArray, spec: Mapping[str, Any], *, log: bool = False
) -> ReadingMap | None:
    """Return a reading as rows over steps, if its axes have a place in the model.

    Args:
        name: of the reading.
        array: run and step first.
        spec: what the recorder wrote down, for names.
        log: colours are logarithmic, as they are for gradients anyway.
    """
    if has_axes(array, "layer", "head"):
        kind, inner = "heads", [f"head {n}" for n in range(array.shape[3])]
    elif has_axes(array, "layer", "matrix"):
        kind, inner = "matrices", [str(n) for n in spec.get("matrices") or range(array.shape[3])]
    elif has_axes(array, "layer"):
        kind, inner = "layers", [""]
    elif has_axes(array, "block"):
        kind, inner = "blocks", [""]
    else:
        return None
    found = course_of(array.isel(run=0))
    if found is None:
        return None
    values = found.values.reshape(len(found.steps), array.shape[2], -1)
    finite = np.isfinite(values)
    log = log or name in LOGARITHMIC
    if not (finite & (values > 0) if log else finite).any():
        return None
    outer = [f"layer {n}" for n in range(array.shape[2])]
    if kind == "blocks":
        given = [str(block) for block in spec.get("blocks") or []]
        outer = [*given, *(str(n) for n in range(array.shape[2]))][: array.shape[2]]
    groups, rows, kept = [], [], []
    for place, label in enumerate(outer):
        # A layer with fewer heads than another has nothing in its last ones at any step.
        there = [n for n in range(values.shape[2]) if finite[:, place, n].any()]
        if there:
            groups.append((label, len(there)))
            rows += [inner[n] if n < len(inner) else str(n) for n in there]
            kept += [values[:, place, n] for n in there]
    meaning = str(array.attrs.get("meaning", ""))
    return ReadingMap(
        name, meaning, kind, tuple(groups), tuple(rows), found.steps, np.stack(kept), log
    )


def fitting(maps: Sequence[ReadingMap], room: int = MAPS_BYTES) -> tuple[ReadingMap, ...]:
    """Return the maps with so few readings that all of them fit a page."""
    most = COLUMNS
    while True:
        kept = tuple(_thinned(part, most) for part in maps)
        if most <= FEWEST_COLUMNS or sum(len(part.packed()) for part in kept) <= room:
            return kept
        most //= 2


def _thinned(part: ReadingMap, most: int) -> ReadingMap:
    shown = thinned(len(part.steps), most)
    return replace(part, steps=part.steps[shown], values=part.values[:, shown])
