"""The figures and the table of ``li2023.multilayer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Figure, Heat, Line, Mark, Panel, Rule
from attnscope.report.page import Cell, Table
from attnscope.studies.li2023 import _multilayer_claims as said
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.li2023.multilayer import Multilayer


def figures(study: Multilayer, tree: xr.DataTree) -> list[Figure]:
    """Return the map of heads, and what happens over training."""
    return [head_map(study, tree), over_training(study, tree)]


def head_map(study: Multilayer, tree: xr.DataTree) -> Figure:
    """Draw same-topic over different-topic attention, layer by head."""
    blocks = (
        ("trained", said.ratios(tree, said.DEEP)),
        ("untrained twin", said.ratios(tree, said.DEEP, 0)),
        ("topics shuffled", said.shuffled_ratios(tree, said.DEEP)),
        ("one layer, trained", said.ratios(tree, said.SHALLOW)),
    )
    # Side by side in one map, so that they share their colours; a column between is empty.
    width = study.heads + 1
    values = np.full((study.layers, len(blocks) * width - 1), np.nan)
    for i, (_, ratios) in enumerate(blocks):
        place = slice(i * width, i * width + study.heads)
        values[: ratios.shape[1], place] = np.log2(ratios).mean(axis=0)
    heat = Heat(
        np.arange(values.shape[1] + 1.0),
        np.arange(study.layers + 1) + 0.5,
        values,
        "log₂ of the ratio",
        diverging=True,
    )
    ticks = tuple((i * width + study.heads / 2, name) for i, (name, _) in enumerate(blocks))
    panel = Panel("layers by heads", "heads, side by side", "layer", (heat,), xticks=ticks)
    return Figure(
        "heads",
        "Same-topic over different-topic attention, head by head",
        f"Mean over {study.seeds} seeds of log₂ of the ratio after {study.epochs:,} steps of Adam "
        f"at {study.adam:g}, on held-out documents: 1 is twice as much attention to other words of "
        "the topic, -1 half as much. With several layers heads look at other topics; a single "
        "layer of the same heads looks at its own.",
        (panel,),
        columns=1,
    )


def over_training(study: Multilayer, tree: xr.DataTree) -> Figure:
    """Draw ratio, norms and turning of W^V, layer by layer."""
    steps = tree["observables/time"].to_numpy()
    attention = select(tree, "attention", said.DEEP)
    ratio = (attention.isel(kind=1) / attention.isel(kind=2)).mean("head").to_numpy()
    norms = select(tree, "norm", said.DEEP).to_numpy()
    panels = [
        Panel(
            "topics",
            "step",
            "same topic / different topics",
            (*_by_layer(steps, ratio), Rule(1.0, "no structure")),
        )
    ]
    panels += [
        Panel(f"norm of {name}", "step", f"‖{name}‖_F", _by_layer(steps, norms[:, :, matrix]))
        for matrix, name in enumerate(said.MATRICES)
    ]
    at, angle = turning(tree)
    panels.append(
        Panel(
            "turning of W^V",
            "step t",
            "(1 - cos) / 2, from t - 10 to t",
            _by_layer(at, angle),
            yscale="log",
        )
    )
    return Figure(
        "over-training",
        "Layers over training",
        f"{study.layers} layers of {study.heads} heads, mean over {study.seeds} seeds with 95 % "
        "bands; the ratio is also a mean over heads, norms and angles are of all heads of a layer "
        "together. W^V moves first, then grows slowly and goes on turning; W^K and W^Q follow "
        "(Li 2023, Figs 4 and 5).",
        tuple(panels),
    )


def turning(tree: xr.DataTree) -> tuple[np.ndarray, np.ndarray]:
    """Return steps t and (1 - cos)/2 between W^V at t - 10 and at t, ``(seed, t, layer)``."""
    from attnscope.studies.li2023.multilayer import TURN

    values = select(tree, "value_matrix", said.DEEP)
    clock = values["time_turn"].to_numpy().round()
    late = np.flatnonzero(np.isin(clock - TURN, clock))
    early = np.searchsorted(clock, clock[late] - TURN)
    flat = values.to_numpy().reshape(*values.shape[:3], -1).astype(float)
    a, b = flat[:, early], flat[:, late]
    cosine = (a * b).sum(-1) / np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    return clock[late], (1 - cosine) / 2


def layer_table(study: Multilayer, tree: xr.DataTree) -> Table:
    """Return one row for each layer at the end of training, and one for the single layer."""
    overlap = said.stage_overlap(tree, False).mean(axis=0)
    _, angle = turning(tree)
    rows: list[tuple[Cell, ...]] = []
    for case in (said.DEEP, said.SHALLOW):
        ratios = said.ratios(tree, case)
        main = select(tree, "main_topic", case).isel(snapshot=-1).to_numpy()
        norms = select(tree, "norm", case).isel(step=-1).mean("run").to_numpy()
        for layer in range(ratios.shape[1]):
            deep = case == said.DEEP
            rows.append(
                (
                    case,
                    layer + 1,
                    float(ratios[:, layer].mean()),
                    float(ratios[:, layer].min()),
                    float(ratios[:, layer].max()),
                    float(main[:, layer].mean()),
                    *norms[:, layer].tolist(),
                    float(overlap[layer]) if deep else None,
                    float(angle[:, -1, layer].mean()) if deep else None,
                )
            )
    columns = (
        "model",
        "layer",
        "same topic / different topics",
        "least of a head",
        "most of a head",
        "[MASK] on the main topic (factor)",
        *(f"‖{name}‖_F" for name in said.MATRICES),
        "growth of W^K or W^Q when W^V is half-way",
        "last turn of W^V, (1 - cos) / 2",
    )
    title = f"Layers after {study.epochs:,} steps, {study.seeds} seeds"
    return Table("layers", title, columns, tuple(rows))


def _by_layer(steps: np.ndarray, values: np.ndarray) -> tuple[Mark, ...]:
    """Return mean and band over seeds of each layer; values are ``(seed, step, layer)``."""
    marks: list[Mark] = []
    for layer in range(values.shape[2]):
        mean, low, high = mean_interval(values[:, :, layer])
        # A band on a logarithmic axis must not reach zero.
        low = np.maximum(low, mean / 10)
        marks += [
            Band(steps, low, high, color=layer),
            Line(steps, mean, f"layer {layer + 1}", layer),
        ]
    return tuple(marks)
