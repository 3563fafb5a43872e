"""Figures of a watched run: whatever was recorded, over the steps of training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnscope.claims.diagnosis import Diagnosis
from attnscope.report.attention_maps import thinned
from attnscope.report.figure import Figure, Line, Mark, Panel, Rule
from attnscope.watched.course import course_of, has_axes
from attnscope.watched.diagnosis.uniform import UNIFORM
from attnscope.watched.diagnosis.vanishing import VANISHING

POINTS = 1500
"""Points of a line at most; more than a screen has pixels are of no use."""
LAYERS = 6
"""Layers that get a figure of their own; of more, some are chosen evenly."""
LINES = 64
"""Lines of a panel at most."""
THICK = 8
"""With more lines than this they are thin."""
LOGARITHMIC = frozenset(
    {"gradient_norm", "block_gradient_norm", "update_ratio", "query_key_gradient_ratio"}
)
RULES = {
    "distance_to_uniform": Rule(UNIFORM, "attention begins"),
    "onset_distance": Rule(UNIFORM, "attention begins"),
    "query_key_gradient_ratio": Rule(VANISHING, "gradients vanish"),
}
TOLD_BY = {
    "entropy": frozenset({"relative_entropy"}),
    "onset_distance": frozenset({"distance_to_uniform"}),
}
"""What needs no panel when another variable shows the same."""
XLABEL = "step"


def figures_of(
    tree: xr.DataTree, spec: Mapping[str, Any], diagnoses: Sequence[Diagnosis]
) -> list[Figure]:
    """Return a figure for the loss, for each layer's heads, for layers, weights and the rest."""
    if "observables" not in tree.children:
        return []
    arrays = {
        str(name): array.isel(run=0)
        for name, array in tree["observables"].to_dataset().data_vars.items()
        if "run" in array.dims
    }
    kinds: dict[str, dict[str, xr.DataArray]] = {
        kind: {} for kind in ("loss", "head", "layer", "matrix", "other")
    }
    for name, array in arrays.items():
        kind = _kind(tree["observables"].to_dataset()[name])
        if kind and not TOLD_BY.get(name, frozenset()) & arrays.keys():
            kinds[kind][name] = array
    made = [
        _losses(kinds["loss"], diagnoses),
        *_heads(kinds["head"], spec),
        _layers(kinds["layer"] | _means(kinds["head"]), spec),
        *(_matrices(name, array, spec) for name, array in kinds["matrix"].items()),
        _others(kinds["other"], spec),
    ]
    return [figure for figure in made if figure is not None]


def _kind(array: xr.DataArray) -> str:
    if array.name in ("loss", "probe_loss") and array.ndim == 2:
        return "loss"
    if has_axes(array, "layer", "head"):
        return "head"
    if has_axes(array, "layer", "matrix"):
        return "matrix"
    if has_axes(array, "layer"):
        return "layer"
    return "other" if array.ndim <= 3 else ""


def _losses(arrays: Mapping[str, xr.DataArray], diagnoses: Sequence[Diagnosis]) -> Figure | None:
    marks: list[Mark] = list(loss_lines(arrays))
    if not marks:
        return None
    begun: dict[int, list[str]] = {}
    for diagnosis in diagnoses:
        begun.setdefault(diagnosis.since_step, []).append(_said(diagnosis.name))
    marks += [Rule(step, ", ".join(names), vertical=True) for step, names in begun.items() if step]
    return Figure(
        "loss",
        "Loss",
        "Training loss that each step was taken on"
        + (", and the loss on the probe batch" if "probe_loss" in arrays else "")
        + ". Vertical lines are the steps at which something of the diagnosis began."
        + _thinning(arrays),
        (Panel("", XLABEL, "loss", tuple(marks)),),
        columns=1,
    )


def loss_lines(arrays: Mapping[str, xr.DataArray]) -> list[Line]:
    """Return a curve for each loss that has a number."""
    found = ((name, course_of(array)) for name, array in arrays.items())
    return [
        _line(each.steps, each.values, _said(name), color)
        for color, (name, each) in enumerate(found)
        if each is not None
    ]


def _heads(arrays: Mapping[str, xr.DataArray], spec: Mapping[str, Any]) -> list[Figure | None]:
    if not arrays:
        return []
    count = max(array.shape[1] for array in arrays.values())
    chosen = thinned(count, LAYERS)
    more = f" Of {count} layers {len(chosen)} have such a figure." if len(chosen) < count else ""
    caption = (
        "Attention of each head on the probe batch, or on the batch of the step if there is none. "
        f"{_meanings(arrays)}{more}{_thinning(arrays)}"
    )
    return [
        _figure(
            f"heads-layer-{layer}",
            f"Heads of {layer_name(spec, int(layer))}",
            caption,
            (
                _panel(name, array, array[:, layer], [f"head {h}" for h in range(array.shape[2])])
                for name, array in arrays.items()
                if layer < array.shape[1]
            ),
        )
        for layer in chosen
    ]


def _means(arrays: Mapping[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Return means over heads where there are too many layers for a figure each."""
    return {
        f"{name}, mean over heads": array.mean(str(array.dims[2]), skipna=True, keep_attrs=True)
        for name, array in arrays.items()
        if array.shape[1] > LAYERS
    }


def _layers(arrays: Mapping[str, xr.DataArray], spec: Mapping[str, Any]) -> Figure | None:
    panels = (
        _panel(name, array, array, [layer_name(spec, n) for n in range(array.shape[1])])
        for name, array in arrays.items()
    )
    caption = f"One line a layer. {_meanings(arrays)}{_thinning(arrays)}"
    return _figure("layers", "Layers", caption, panels)


def _matrices(name: str, array: xr.DataArray, spec: Mapping[str, Any]) -> Figure | None:
    names = spec.get("matrices") or [str(n) for n in range(array.shape[2])]
    labels = [layer_name(spec, n, "weight_layers") for n in range(array.shape[1])]
    panels = (
        _panel(name, array, array[:, :, number], labels, f"W^{matrix}")
        for number, matrix in enumerate(names[: array.shape[2]])
    )
    caption = f"One line a layer. {_meanings({name: array})}{_thinning({name: array})}"
    return _figure(plain_name(name), _said(name).capitalize(), caption, panels, columns=2)


def _others(arrays: Mapping[str, xr.DataArray], spec: Mapping[str, Any]) -> Figure | None:
    panels = []
    for name, array in arrays.items():
        if array.ndim == 1:
            panels.append(_panel(name, array, array.expand_dims("_", 1), [_said(name)]))
            continue
        known = {"block": spec.get("blocks"), "word": list(spec.get("words") or {})}
        given = known.get(str(array.dims[1])) or []
        labels = [str(n) for n in range(array.shape[1])]
        labels[: len(given)] = [str(word) for word in given][: len(labels)]
        panels.append(_panel(name, array, array, labels))
    caption = f"{_meanings(arrays)}{_thinning(arrays)}".strip() or "What else was recorded."
    return _figure("others", "What else was recorded", caption, panels)


def _figure(
    name: str, title: str, caption: str, panels: Iterable[Panel | None], **more: Any
) -> Figure | None:
    """Return a figure of the panels that show something; ``None`` if there is none."""
    kept = tuple(panel for panel in panels if panel is not None)
    return Figure(name, title, caption, kept, **more) if kept else None


def _panel(
    name: str,
    array: xr.DataArray,
    part: xr.DataArray,
    labels: Sequence[str],
    title: str = "",
) -> Panel | None:
    found = course_of(part)
    if found is None:
        return None
    shown = range(min(found.values.shape[1], LINES))
    marks: list[Mark] = [
        _line(found.steps, found.values[:, n], labels[n], n, len(shown) > THICK)
        for n in shown
        if np.isfinite(found.values[:, n]).any()
    ]
    if not marks:
        return None
    plain = name.removesuffix(", mean over heads")
    if plain in RULES:
        marks.append(RULES[plain])
    unit = str(array.attrs.get("unit", ""))
    ylabel = _said(plain) + (f" ({unit})" if unit else "")
    positive = np.isfinite(found.values) & (found.values > 0)
    scale = "log" if plain in LOGARITHMIC and positive.any() else "linear"
    return Panel(title or _said(name), XLABEL, ylabel, tuple(marks), yscale=scale)  # type: ignore[arg-type]


def _line(
    steps: np.ndarray, values: np.ndarray, label: str, color: int, thin: bool = False
) -> Line:
    kept = thinned(len(steps), POINTS)
    return Line(steps[kept].astype(float), values[kept], label, color, thin=thin)


def layer_name(spec: Mapping[str, Any], layer: int, key: str = "layers") -> str:
    """Return number and path of a layer."""
    names = spec.get(key) or []
    path = str(names[layer]) if layer < len(names) else ""
    return f"layer {layer} ({path})" if path else f"layer {layer}"


def _thinning(arrays: Mapping[str, xr.DataArray]) -> str:
    longest = max((array.shape[0] for array in arrays.values()), default=0)
    return f" Lines show {POINTS:,} of {longest:,} readings." if longest > POINTS else ""


def _meanings(arrays: Mapping[str, xr.DataArray]) -> str:
    said = {
        name.removesuffix(", mean over heads"): str(array.attrs.get("meaning", ""))
        for name, array in arrays.items()
    }
    return " ".join(f"{_said(name).capitalize()}: {text}." for name, text in said.items() if text)


def _said(name: str) -> str:
    return name.replace("_", " ")


def plain_name(name: str) -> str:
    """Return a name that a file can have."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "variable"
