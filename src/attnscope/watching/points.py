"""Where a model attends: found, and put in order.

Exact ways come first: ``nn.MultiheadAttention``, and the interface of Hugging Face. What they do
not read is heard while the model runs (:mod:`attnscope.watching.intercept`). A module that runs
several times in a forward pass, as the shared layer of ALBERT does, is as many points, ``layer#0``
and on.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.attach_call import CallPoint, RepeatedPoint, numbered
from attnscope.watching.attach_huggingface import HuggingFacePoint, find_huggingface
from attnscope.watching.attach_own import Function, FunctionPoint, OwnPoint, WeightSource, find_own
from attnscope.watching.attach_torch import MultiheadPoint, find_multihead
from attnscope.watching.intercept import Call, Interceptor
from attnscope.watching.moment import AttentionPoint
from attnscope.watching.undisturbed import bare

Exact = MultiheadPoint | HuggingFacePoint | OwnPoint | FunctionPoint
Point = Exact | CallPoint | RepeatedPoint

COMPILED = (
    "the model is compiled: attention is read off a probe batch (probe=...), which runs uncompiled"
)
SCRIPTED = (
    "parts of the model are scripted (torch.jit), and what happens in them cannot be read: watch "
    "the model before it is scripted"
)
WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
"""Parts of paths that wrappers inside a model add."""
NAMED = 3
"""So many names are listed before the rest is counted."""


@dataclass(frozen=True, eq=False)
class Found:
    """Where a model attends, and what there is to say about it.

    Args:
        points: from the first layer to the last.
        notes: sentences about what was not found, or not read.
    """

    points: list[AttentionPoint]
    notes: tuple[str, ...] = ()


def find(
    model: nn.Module,
    attention: str | Sequence[str] | Function | None = None,
    run: Callable[[], object] | None = None,
) -> list[AttentionPoint]:
    """Return the points of :func:`search`."""
    return search(model, attention, run).points


def search(
    model: nn.Module,
    attention: str | Sequence[str] | Function | None = None,
    run: Callable[[], object] | None = None,
    rows: int = 0,
) -> Found:
    """Find where a model attends, from the first layer to the last.

    Args:
        model: any module. Of a compiled or a data-parallel one the module inside is taken: compiled
            code is never read, so weights come from forward passes of :func:`uncompiled` models.
        attention: path or paths of modules (see :mod:`attnscope.watching.attach_own`), or a
            function of the model; ``None`` to look for all that is attention.
        run: one forward pass, such as that of a probe batch, which is run two or three times.
            Points are then in the order in which they ran, those that did not run are left out, and
            a function's list is one point for each layer. Without it only exact ways are found, the
            order is that in which the model holds its modules, or that of the paths, and a
            function's list is one point with the heads of all layers side by side.
        rows: of the batch that is run, 0 if nobody knows.

    Raises:
        AttnscopeError: there is no module of a name that was given, or ``attention`` is neither a
            path nor a function.
    """
    inside = bare(model)
    exact: list[Exact]
    if attention is None:
        order = {module: number for number, module in enumerate(inside.modules())}
        exact = [*find_multihead(inside), *find_huggingface(inside)]
        exact.sort(key=lambda point: order[point.module])
    elif callable(attention):
        exact = [FunctionPoint("attention", WeightSource(inside, attention))]
    elif isinstance(attention, str) or all(isinstance(path, str) for path in attention):
        exact = list(find_own(inside, attention))
    else:
        raise AttnscopeError(
            f"attention={attention!r}: expected a module path, a list of paths, or a function of "
            "the model that returns weights."
        )
    points: list[Point] = list(exact)
    notes: list[str] = []
    if run is not None and callable(attention):
        points = _of_function(exact, run)
    elif run is not None:
        points, notes = _heard(inside, exact, run, attention is not None, rows)
    if any(isinstance(module, torch.jit.ScriptModule) for module in inside.modules()):
        notes.append(SCRIPTED)
    compiled = any(hasattr(module, "_orig_mod") for module in model.modules())
    return Found([_labelled(point, COMPILED if compiled else "") for point in points], tuple(notes))


def uncompiled(model: nn.Module) -> nn.Module:
    """Return the module that ``torch.compile`` was given, or the model itself.

    Compiled parts inside a model run as they are written below
    ``torch.compiler.set_stance("force_eager")``.
    """
    inside: nn.Module = getattr(model, "_orig_mod", model)
    return inside


def _labelled(point: Point, note: str) -> Point:
    if isinstance(point, RepeatedPoint):
        return replace(point, path=_plain(point.path), note=note)
    return replace(point, name=_plain(point.name), note=note)


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in WRAPPERS)


def _heard(
    model: nn.Module, exact: Sequence[Exact], run: Callable[[], object], named: bool, rows: int
) -> tuple[list[Point], list[str]]:
    """Run a model; return points in the order in which they ran, and what was not found.

    Args:
        model: what is run.
        exact: points that may be read in an exact way.
        run: one forward pass.
        named: whether somebody named their modules, so that no others are wanted.
        rows: of the batch.
    """
    with _kept_quiet() as said:
        tried = _run_attached(exact, run)
    works = [point for point, calls in zip(exact, tried, strict=True) if any(calls)]
    lost = [point for point in exact if point not in works]
    source = Interceptor(model, rows)
    source.covered = {point.name for point in works}
    order: list[tuple[Exact | Call, int]] = []

    def hear(call: Call) -> None:
        if not named or any(_holds(point.name, call.name) for point in lost):
            weights = call.weights()
            if weights.numel():
                order.append((call, weights.shape[1]))

    with source.listening(hear):
        _run_attached(works, run, order)
    points = _points(order, source)
    heard = [point.path for point in points if isinstance(point, CallPoint)]
    deaf = [point for point in lost if not any(_holds(point.name, path) for path in heard)]
    for message in said:
        # What cannot be read in one way is only worth a word if no other way reads it.
        if any(f"'{point.name}'" in message for point in deaf):
            warnings.warn(message, stacklevel=6)
    silent = [point.name for point in deaf if not tried[exact.index(point)]]
    return points, [_did_not_run(silent, named)] if silent else []


def _run_attached(
    points: Sequence[Exact],
    run: Callable[[], object],
    order: list[tuple[Exact | Call, int]] | None = None,
) -> list[list[int]]:
    """Run a model; return the heads of every call of every point, 0 where it was not readable."""
    heads: list[list[int]] = [[] for _ in points]
    handles: list[Any] = []
    for index, point in enumerate(points):

        def keep(weights: Tensor, index: int = index) -> None:
            count = weights.shape[1] if weights.ndim == 4 else 0
            heads[index].append(count)
            if order is not None and count:
                order.append((points[index], count))

        handles.append(point.attach(keep))
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return heads


def _points(order: Sequence[tuple[Exact | Call, int]], source: Interceptor) -> list[Point]:
    """Return a point for everything that ran, calls of one module numbered if there are several."""
    total = Counter(item.name for item, _ in order)
    seen: Counter[str] = Counter()
    points: list[Point] = []
    for item, heads in order:
        number = seen[item.name]
        seen[item.name] += 1
        several = total[item.name] > 1
        if isinstance(item, Call):
            name = numbered(item.name, number) if several else item.name
            points.append(
                CallPoint(name, item.module, source, item.name, item.way, item.number, heads)
            )
        elif several:
            points.append(RepeatedPoint(item, item.name, number, heads))
        else:
            points.append(replace(item, known=heads) if isinstance(item, OwnPoint) else item)
    return points


def _of_function(points: Sequence[Exact], run: Callable[[], object]) -> list[Point]:
    """Return a point for every layer that a function of the model gives weights of."""
    found: list[Point] = []
    for point, heads in zip(points, _run_attached(points, run), strict=True):
        if not isinstance(point, FunctionPoint) or not any(heads):
            continue
        with torch.no_grad():
            layers = point.source.layers()
        if len(layers) == 1:
            found.append(replace(point, known=heads[-1]))
        else:
            found += [
                FunctionPoint(f"{point.name}.{index}", point.source, index, layer.shape[1])
                for index, layer in enumerate(layers)
            ]
    return found


def _holds(path: str, name: str) -> bool:
    return not path or f"{name}.".startswith(f"{path}.")


def _did_not_run(names: Sequence[str], named: bool) -> str:
    some = ", ".join(f"'{name}'" for name in names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    hint = ": give a probe batch that reaches them, or other paths" if named else ""
    what = "attention that did not run in the forward pass, and is not recorded"
    return f"{what}: {some}{more}{hint}"


@contextmanager
def _kept_quiet() -> Iterator[list[str]]:
    """Collect our own warnings; those of others go on."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    for warning in caught:
        if str(warning.message).startswith("attnscope:"):
            said.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
