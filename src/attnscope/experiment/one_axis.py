"""Several theories on one axis of time: what each of them reads of a run, and when it speaks.

A view is one theory's reading, layer by layer, with the level at which something begins. Studies
and reports of watched models share them, so that a run of one's own lies under the same theories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.report.figure import Figure, Line, Mark, Panel, Rule
from attnscope.report.page import Table

BEGUN = 0.05
"""Total variation to uniform attention from which on attention has begun."""
LOOKS_BACK = 0.3
"""Attention to the previous token from which on a head looks back."""
INDUCES = 0.5
"""Prefix-matching score from which on a head is an induction head."""
UNCERTAIN = 0.1
"""Part of the first entropy below which the floor does not rule out collapse."""
FEWEST = 3
"""Views that make it worth while to lay them on one axis."""
MOST = 8
"""Layers that a panel shows at most."""

Curve = tuple[np.ndarray, np.ndarray]
"""Steps, and a reading at each: ``(step, layer, ...)``."""
Reduce = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class View:
    """What a theory reads.

    Args:
        theory: its citation key.
        title: of the panel.
        axis: what is read.
        readings: names of what may be recorded for it; the first one that was is taken.
        reduce: makes ``(step, layer)`` of a reading.
        level: at which something begins, on the axis; infinite where nothing does.
        happens: what begins then, with ``{}`` for the layer.
        beside: name, reduction and label of what is drawn as thin lines beside it.
        falls: what begins does so where the first of those falls below the level, as a part of its
            first value; otherwise where the reading itself rises above it.
    """

    theory: str
    title: str
    axis: str
    readings: tuple[str, ...]
    reduce: Reduce
    level: float
    happens: str
    beside: tuple[tuple[str, Reduce, str], ...] = ()
    falls: bool = False

    def read(self, curves: Mapping[str, Curve]) -> str:
        """Return which of its readings there is; empty for none."""
        return next((name for name in self.readings if name in curves), "")


@dataclass(frozen=True)
class Happening:
    """Something that a theory announces: when, what, in which layer."""

    step: float
    words: str
    theory: str
    layer: int


def _ahead(values: np.ndarray) -> np.ndarray:
    """Return the head that is ahead; a reading of layers is that already."""
    return values if values.ndim == 2 else np.asarray(_of_known(np.nanmax, values))


def _middle(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 2 else np.asarray(_of_known(np.nanmean, values))


def _scores(values: np.ndarray) -> np.ndarray:
    """Return the rank of what queries and keys learned, of the head that is ahead."""
    return _ahead(values[..., 0])


def _values(values: np.ndarray) -> np.ndarray:
    """Return the same of values and outputs."""
    return _ahead(values[..., 1])


def _of_known(of: Callable[..., np.ndarray], values: np.ndarray) -> np.ndarray:
    """Reduce the heads; NaN where a layer has none, without NumPy's warning."""
    there = ~np.isnan(values).all(axis=2)
    found = np.full(values.shape[:2], np.nan)
    found[there] = of(values[there], axis=-1)
    return found


VIEWS = (
    View(
        "li2023",
        "onset (li2023)",
        "distance to uniform attention",
        ("onset_distance", "distance_to_uniform"),
        _ahead,
        BEGUN,
        "attention of layer {} begins",
    ),
    View(
        "edelman2024",
        "looking back (edelman2024)",
        "attention to the previous token",
        ("mass_previous",),
        _ahead,
        LOOKS_BACK,
        "layer {} looks back",
    ),
    View(
        "aoyama2025",
        "induction (aoyama2025)",
        "prefix-matching score",
        ("induction",),
        _ahead,
        INDUCES,
        "layer {} has an induction head",
    ),
    View(
        "boix2023",
        "rank (boix2023)",
        "stable rank of what was learned",
        ("rank_growth",),
        _scores,
        # Before anything is learned the rank is that of noise, so no level says what begins.
        np.inf,
        "",
        beside=(("rank_growth", _values, "W_O W_V"),),
    ),
    View(
        "zhai2023",
        "entropy and its floor (zhai2023)",
        "nats",
        ("entropy",),
        _middle,
        UNCERTAIN,
        "collapse of layer {} is not ruled out",
        beside=(("entropy_floor", _middle, "floor"),),
        falls=True,
    ),
)


def speaking(curves: Mapping[str, Curve]) -> list[View]:
    """Return the views that a run has readings for."""
    return [view for view in VIEWS if view.read(curves)]


def worth_while(curves: Mapping[str, Curve]) -> bool:
    """Whether a run has readings for several theories, one of which usual recordings lack."""
    asked = {"rank_growth", "entropy_floor"} & curves.keys()
    return bool(asked) and len(speaking(curves)) >= FEWEST


def happenings(curves: Mapping[str, Curve], first: int = 0) -> list[Happening]:
    """Return what theories announce, in the order of time.

    What is so from the first reading on has no beginning.

    Args:
        curves: readings by name.
        first: number of the first layer in words.
    """
    found = []
    for view in speaking(curves):
        name, reduce, _ = view.beside[0] if view.falls else (view.read(curves), view.reduce, "")
        if name not in curves:
            continue
        steps, values = curves[name][0], reduce(curves[name][1])
        for layer, own in enumerate(values.T):
            known = np.flatnonzero(np.isfinite(own))
            if not known.size:
                continue
            limit = view.level * own[known[0]] if view.falls else view.level
            there = known[own[known] < limit if view.falls else own[known] > limit]
            if there.size and there[0] > known[0]:
                words = view.happens.format(layer + first)
                found.append(Happening(float(steps[there[0]]), words, view.theory, layer))
    return sorted(found, key=lambda each: each.step)


def panels(curves: Mapping[str, Curve], first: int = 0) -> list[Panel]:
    """Return a panel for each theory that has something to read, with what begins in it."""
    made = []
    events = happenings(curves, first)
    for view in speaking(curves):
        marks: list[Mark] = []
        for name, reduce, label in ((view.read(curves), view.reduce, ""), *view.beside):
            if name not in curves:
                continue
            steps, values = curves[name][0], reduce(curves[name][1])
            for layer, own in enumerate(values.T[:MOST]):
                said = f"{label}, layer {layer + first}" if label else f"layer {layer + first}"
                marks.append(Line(steps, own, said, layer, thin=bool(label)))
        marks += [
            Rule(each.step, each.words, vertical=True)
            for each in events
            if each.theory == view.theory
        ]
        made.append(Panel(view.title, "step", view.axis, tuple(marks)))
    return made


def one_axis(
    curves: Mapping[str, Curve], first: int = 0, *, more: Sequence[Panel] = (), caption: str = ""
) -> Figure:
    """Return the figure of all theories on one axis.

    Args:
        curves: readings by name.
        first: number of the first layer in words.
        more: panels that stand in front.
        caption: what is drawn besides, said first.
    """
    said = (
        "Readings of several theories on one axis of time, a line for each layer: of the head that "
        "is ahead, for entropy the mean over heads. Thin: ranks of W_O W_V, and the least entropy "
        "that the logits of the rows allow. Vertical lines: what begins there."
    )
    whole = (*more, *panels(curves, first))
    title = "Which theory speaks when"
    return Figure("theories", title, f"{caption} {said}".strip(), whole)


def speaking_table(events: Sequence[Happening]) -> Table:
    """Tabulate what theories announce in one run."""
    rows = tuple((int(each.step), each.words, each.theory) for each in events)
    return Table("theories", "Which theory speaks when", ("step", "what begins", "theory"), rows)
