"""Where a model attends: found, put in order, and said in words.

A module that runs several times in a forward pass, as the shared layer of ALBERT does, is one
point. Its weights are handed on at every call, and the last call of a forward pass is the one that
stays: the number of calls is not known beforehand, and so every reading has the same shape.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.attach_huggingface import HuggingFacePoint, find_huggingface
from attnscope.watching.attach_own import Function, FunctionPoint, OwnPoint, WeightSource, find_own
from attnscope.watching.attach_torch import MultiheadPoint, find_multihead
from attnscope.watching.moment import AttentionPoint

Point = MultiheadPoint | HuggingFacePoint | OwnPoint | FunctionPoint

WIDTH = 100
COMPILED = (
    "the model is compiled: attention is read off a probe batch (probe=...), which runs uncompiled"
)
NOTHING = (
    "attnscope: no attention was found in this model, so nothing about attention is recorded. Name "
    "the modules that compute it, attention='blocks.*.attn' (they return their weights) or "
    "'blocks.*.attn:weights' (they keep them as an attribute), or give a function, "
    "attention=lambda model: ..., that returns the weights after a forward pass."
)


def find(
    model: nn.Module,
    attention: str | Sequence[str] | Function | None = None,
    run: Callable[[], object] | None = None,
) -> list[AttentionPoint]:
    """Return where a model attends, from the first layer to the last.

    Args:
        model: any module. Of a compiled one the module inside is taken: compiled code is never
            read, so weights come from forward passes of :func:`uncompiled` models.
        attention: path or paths of modules (see :mod:`attnscope.watching.attach_own`), or a
            function of the model; ``None`` to look for ``nn.MultiheadAttention`` and for Hugging
            Face models.
        run: one forward pass, such as that of a probe batch. Points are then in the order in which
            they ran, those that did not run are left out, and a function's list is one point for
            each layer. Without it the order is that in which the model holds its modules, or that
            of the paths, and a function's list is one point with the heads of all layers side by
            side.

    Raises:
        AttnscopeError: there is no module of a name that was given, or ``attention`` is neither a
            path nor a function.
    """
    inside = uncompiled(model)
    points: list[Point]
    if attention is None:
        order = {module: number for number, module in enumerate(inside.modules())}
        points = [*find_multihead(inside), *find_huggingface(inside)]
        points.sort(key=lambda point: order[point.module])
    elif callable(attention):
        points = [FunctionPoint("attention", WeightSource(inside, attention))]
    elif isinstance(attention, str) or all(isinstance(path, str) for path in attention):
        points = list(find_own(inside, attention))
    else:
        raise AttnscopeError(
            f"attention={attention!r}: expected a module path, a list of paths, or a function of "
            "the model that returns weights."
        )
    if run is not None:
        points = _in_order(points, run)
    compiled = any(hasattr(module, "_orig_mod") for module in model.modules())
    return [
        replace(point, name=_plain(point.name), note=COMPILED if compiled else "")
        for point in points
    ]


def uncompiled(model: nn.Module) -> nn.Module:
    """Return the module that ``torch.compile`` was given, or the model itself.

    Compiled parts inside a model run as they are written below
    ``torch.compiler.set_stance("force_eager")``.
    """
    inside: nn.Module = getattr(model, "_orig_mod", model)
    return inside


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part != "_orig_mod")


def _in_order(points: Sequence[Point], run: Callable[[], object]) -> list[Point]:
    """Run a model once; return the points in the order in which they first ran."""
    heads: dict[int, int] = {}
    handles: list[Any] = []
    for index, point in enumerate(points):

        def keep(weights: Tensor, index: int = index) -> None:
            if weights.ndim == 4:
                heads.setdefault(index, weights.shape[1])

        handles.append(point.attach(keep))
    try:
        run()
        ordered: list[Point] = []
        for index, count in heads.items():
            ordered += _known(points[index], count)
    finally:
        for handle in handles:
            handle.remove()
    return ordered


def _known(point: Point, heads: int) -> list[Point]:
    """Return a point with what its first run showed."""
    if isinstance(point, FunctionPoint):
        with torch.no_grad():
            layers = point.source.layers()
        if len(layers) == 1:
            return [replace(point, known=heads)]
        return [
            FunctionPoint(f"{point.name}.{index}", point.source, index, layer.shape[1])
            for index, layer in enumerate(layers)
        ]
    return [replace(point, known=heads)] if isinstance(point, OwnPoint) else [point]


def describe(
    points: Sequence[AttentionPoint],
    readings: Sequence[str],
    cost: str,
    notes: Sequence[str] = (),
) -> str:
    """Return what was found, what will be recorded and what it costs, in a few aligned lines.

    Args:
        points: where the model attends.
        readings: what is recorded and when, such as ``"entropy every 100 steps"``.
        cost: what a reading costs, such as ``"48.0 kB per reading"``.
        notes: what else there is to say.

    Without points it is a sentence that says what to do, before the other lines.
    """
    lines: list[tuple[str, str]] = []
    if points:
        lines.append(("attention", _count(points)))
        lines += [("", words) for words in _folded(points)]
        own = dict.fromkeys(getattr(point, "note", "") for point in points)
        lines += [("note", note) for note in own if note]
    lines.append(("records", ", ".join(readings) or "nothing"))
    lines += [("costs", cost), *(("note", note) for note in notes if note)]
    text = "attnscope watches this model" if points else textwrap.fill(NOTHING, WIDTH)
    for title, words in lines:
        begin = f"  {title:<11}"
        text += "\n" + textwrap.fill(
            words,
            WIDTH,
            initial_indent=begin,
            subsequent_indent=" " * len(begin),
            break_on_hyphens=False,
            break_long_words=False,
        )
    return text


def _count(points: Sequence[AttentionPoint]) -> str:
    layers = f"{len(points)} layer{'s' * (len(points) > 1)}"
    heads = [point.heads for point in points]
    if not all(heads):
        return f"{layers}; heads are known after the first forward pass"
    if len(set(heads)) == 1:
        return f"{layers} of {heads[0]} head{'s' * (heads[0] > 1)}"
    return f"{layers}, {sum(heads)} heads in all"


def _folded(points: Sequence[AttentionPoint]) -> list[str]:
    """Return a line for every group of names that differ in their numbers only."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    for point in points:
        key = (re.sub(r"(?<![^.])\d+(?![^.])", "#", point.name), point.kind, point.heads)
        groups.setdefault(key, []).append(point.name)
    lines = []
    for (pattern, kind, heads), names in groups.items():
        count = f", {heads} head{'s' * (heads > 1)}" if heads else ""
        lines += [f"{name or 'the model'} ({kind}{count})" for name in _fold(pattern, names)]
    return lines


def _fold(pattern: str, names: Sequence[str]) -> list[str]:
    """Return names as one, with ranges for numbers, if they are all of its combinations."""
    places = [place for place, part in enumerate(pattern.split(".")) if part == "#"]
    columns = [sorted({int(name.split(".")[place]) for name in names}) for place in places]
    if len(names) == 1 or math.prod(map(len, columns)) != len(names):
        return list(names)
    words = iter(_ranges(column) for column in columns)
    return [".".join(next(words) if part == "#" else part for part in pattern.split("."))]


def _ranges(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    if numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{{{numbers[0]}-{numbers[-1]}}}"
    return "{" + ",".join(map(str, numbers)) + "}"
