"""The figures and the table of ``li2023.multilayer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report import Band, Cell, Figure, Heat, Line, Mark, Panel, Rule, Table
from attnscope.studies.li2023._held_out import ratio
from attnscope.studies.li2023.multilayer.claims import (
    DEEP,
    MATRICES,
    SHALLOW,
    ratios,
    stage_overlap,
)
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.li2023.multilayer.study import Multilayer

TURN = 10
"""Steps between the two W^V whose angle is taken."""


def figures(study: Multilayer, run: Readings) -> list[Figure]:
    """Draw layers by heads, and norms, ratios and turning over training."""
    return [head_map(study, run), over_training(study, run)]


def head_map(study: Multilayer, run: Readings) -> Figure:
    """Draw same-topic over different-topic attention, layer by head."""
    deep = run.of(DEEP)
    blocks = {
        "trained": final(deep.attention),
        "untrained twin": initial(deep.attention),
        "topics shuffled": final(deep.shuffled),
        "one layer, trained": final(run.of(SHALLOW).attention),
    }
    # Side by side in one map, so that they share their colours; a column between is empty.
    width = study.heads + 1
    values = np.full((study.layers, len(blocks) * width - 1), np.nan)
    for i, reading in enumerate(blocks.values()):
        mean = np.log2(ratios(reading).to_numpy()).mean(axis=0)
        values[: len(mean), i * width : i * width + study.heads] = mean
    columns, rows = np.arange(values.shape[1] + 1.0), np.arange(study.layers + 1) + 0.5
    heat = Heat(columns, rows, values, "log₂ of the ratio", diverging=True)
    ticks = tuple((i * width + study.heads / 2, name) for i, name in enumerate(blocks))
    panel = Panel("layers by heads", "heads, side by side", "layer", (heat,), xticks=ticks)
    return Figure(
        "heads",
        "Same-topic over different-topic attention, head by head",
        f"Mean over {study.seeds} seeds of log₂ of the ratio after {study.training.steps:,} steps "
        f"of Adam at {study.training.rate:g}, on held-out documents: 1 is twice as much attention "
        "to other words of the topic, -1 half as much. With several layers heads look at other "
        "topics; a single layer of the same heads looks at its own.",
        (panel,),
        columns=1,
    )


def over_training(study: Multilayer, run: Readings) -> Figure:
    """Draw ratio, norms and turning of W^V, layer by layer."""
    deep = run.of(DEEP)
    topics = (*_by_layer(ratio(deep.attention).mean("head")), Rule(1.0, "no structure"))
    panels = [Panel("topics", "step", "same topic / different topics", topics)]
    panels += [
        Panel(f"norm of {name}", "step", f"‖{name}‖_F", _by_layer(deep.norm.sel(matrix=name)))
        for name in MATRICES
    ]
    angles, label = _by_layer(turning(run)), "(1 - cos) / 2, from t - 10 to t"
    panels.append(Panel("turning of W^V", "step t", label, angles, yscale="log"))
    return Figure(
        "over-training",
        "Layers over training",
        f"{study.layers} layers of {study.heads} heads, mean over {study.seeds} seeds with 95 % "
        "bands; the ratio is also a mean over heads, norms and angles are of all heads of a layer "
        "together. W^V moves first, then grows slowly and goes on turning; W^K and W^Q follow "
        "(Li 2023, Figs 4 and 5).",
        tuple(panels),
    )


def turning(run: Readings) -> xr.DataArray:
    """Return (1 - cos)/2 between W^V at step t - 10 and at t, seed by t by layer."""
    values = run.of(DEEP).value_matrix.astype(float)
    clock = values["turn"].to_numpy()
    late = values.isel(turn=np.isin(clock - TURN, clock))
    early = late.copy(data=values.sel(turn=late["turn"] - TURN).to_numpy())
    entries = ("head", "word_out", "word_in")
    norms = (early**2).sum(entries) * (late**2).sum(entries)
    return (1 - (early * late).sum(entries) / norms**0.5) / 2


def tables(study: Multilayer, run: Readings) -> list[Table]:
    """Tabulate every layer at the end of training, and the single layer."""
    overlap, turned = stage_overlap(run, False).mean("seed"), final(turning(run)).mean("seed")
    rows: list[tuple[Cell, ...]] = []
    for case in (DEEP, SHALLOW):
        own = run.of(case)
        found = ratios(final(own.attention))
        main, norms = final(own.main_topic), final(own.norm).mean("seed")
        for layer in range(found.sizes["layer"]):
            at = {"layer": layer}
            read = (found[at].mean(), found[at].min(), found[at].max(), main[at].mean())
            last = (overlap[at], turned[at]) if case == DEEP else ()
            cells = [float(each) for each in (*read, *norms[at], *last)]
            rows.append((case, layer + 1, *cells, *[None] * (2 - len(last))))
    columns = (
        "model",
        "layer",
        "same topic / different topics",
        "least of a head",
        "most of a head",
        "[MASK] on the main topic (factor)",
        *(f"‖{name}‖_F" for name in MATRICES),
        "growth of W^K or W^Q when W^V is half-way",
        "last turn of W^V, (1 - cos) / 2",
    )
    title = f"Layers after {study.training.steps:,} steps, {study.seeds} seeds"
    return [Table("layers", title, columns, tuple(rows))]


def _by_layer(reading: xr.DataArray) -> tuple[Mark, ...]:
    """Return mean and band over seeds of each layer, of a band that does not reach zero."""
    marks: list[Mark] = []
    steps = reading[reading.dims[1]].to_numpy()
    for layer in range(reading.sizes["layer"]):
        mean, low, high = mean_interval(reading.isel(layer=layer).to_numpy())
        # A band on a logarithmic axis must not reach zero.
        band = Band(steps, np.maximum(low, mean / 10), high, color=layer)
        marks += [band, Line(steps, mean, f"layer {layer + 1}", layer)]
    return tuple(marks)
