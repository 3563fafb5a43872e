"""Attention that somebody wrote, by the path of its module or by a function that returns weights.

A path such as ``"blocks.0.attn"`` names a module that returns its weights, alone or in a tuple or a
dictionary. There they are recognised: a tensor of four axes, or else of three, without negative
numbers, whose last axis sums to 1. Dropout thins weights out, so a sum of 1 on the mean will do if
there is nothing better; such weights are taken as they are. ``"blocks.0.attn:weights"`` names an
attribute that the module has after it ran, and ``*`` stands for any part: ``"blocks.*.attn"``. Four
axes may also be ``(row, query, head, key)``: that is told by the number of heads that the module
says it has, or by as many queries as keys.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.attach_method import Detach, Keep, Keeper, count_heads, four_axes
from attnscope.watching.moment import Handle
from attnscope.watching.weight_axes import query_behind_head

Function = Callable[[nn.Module], Tensor | Sequence[Tensor]]
"""Returns a model's weights, or those of every layer, after a forward pass."""

EXACT, THINNED = 0.01, 0.1
"""How far from 1 a sum of weights may be: of any row in half precision, and of the mean row."""


@dataclass(frozen=True, eq=False)
class OwnPoint:
    """A module that shows its weights.

    Args:
        name: path of the module.
        module: the module.
        attribute: where it has them; empty if it returns them.
        known: number of heads as seen in a forward pass.
        note: what else there is to say about it.
    """

    name: str
    module: nn.Module
    attribute: str = ""
    known: int = 0
    note: str = ""

    @property
    def heads(self) -> int:
        """Number of heads; 0 if it is not known yet."""
        return self.known or count_heads(self.module)

    @property
    def kind(self) -> str:
        """What it is, and where the weights are."""
        where = f"attribute '{self.attribute}'" if self.attribute else "what it returns"
        return f"{type(self.module).__name__}, {where}"

    def attach(self, keep: Keep) -> Handle:
        """Have weights kept whenever the module runs; see :class:`AttentionPoint`."""
        keeper, place = Keeper(self.name, keep), _Place(count_heads(self.module))
        # While a graph is traced the first is true, and tensors are of another class in the rest.
        is_traced, is_compiling = torch.compiler.is_dynamo_compiling, torch.compiler.is_compiling
        quick = getattr(keep, "quick", None)

        def hear(module: nn.Module, _: Any, output: Any) -> None:
            if is_traced():
                return
            key = place.key
            # A tuple that is shorter than the first one is the keeper's to complain about.
            known = key is not None and output.__class__ is tuple and key < len(output)
            if known and quick is not None and quick(output[key]):
                return
            if is_compiling():
                return
            if self.attribute:
                keeper.give(lambda: place.arrange(getattr(module, self.attribute)), made=True)
            elif place.path is None or place.turned:
                keeper.give(lambda: place.find(output))
            else:
                keeper.take(output, place.path)

        return self.module.register_forward_hook(hear)


@dataclass(frozen=True, eq=False)
class FunctionPoint:
    """One of the tensors that a function of the model returns.

    Args:
        name: ``attention``, with the number of the layer if the function returns a list.
        source: calls the function.
        index: number of the layer; ``None`` for all layers as heads side by side.
        known: number of heads as seen in a forward pass.
        note: what else there is to say about it.
    """

    name: str
    source: WeightSource
    index: int | None = None
    known: int = 0
    note: str = ""

    @property
    def module(self) -> nn.Module:
        """The model."""
        return self.source.model

    @property
    def heads(self) -> int:
        """Number of heads; 0 if it is not known yet."""
        return self.known

    @property
    def kind(self) -> str:
        """What it is."""
        return f"function '{getattr(self.source.function, '__name__', 'attention')}' of the model"

    def attach(self, keep: Keep) -> Handle:
        """Have weights kept after every forward pass; see :class:`AttentionPoint`."""
        return self.source.attach(self.index, Keeper(self.name, keep))


@dataclass(eq=False)
class WeightSource:
    """A function of a model, called once after a forward pass for all who want its weights."""

    model: nn.Module
    function: Function
    keepers: list[tuple[int | None, Keeper]] = field(default_factory=list)
    hook: Any = None

    def attach(self, index: int | None, keeper: Keeper) -> Handle:
        """Have a layer's weights kept until the handle is removed."""
        if not self.keepers:
            self.hook = self.model.register_forward_hook(self._hear)
        self.keepers.append((index, keeper))
        return Detach([partial(self._detach, keeper)])

    def _detach(self, keeper: Keeper) -> None:
        self.keepers = [pair for pair in self.keepers if pair[1] is not keeper]
        if not self.keepers:
            self.hook.remove()

    def layers(self) -> list[Tensor]:
        """Call the function; return weights of every layer."""
        made = self.function(self.model)
        layers = [made] if isinstance(made, Tensor) else list(made)
        return [four_axes(_as_tensor(layer)) for layer in layers]

    def _hear(self, *_: Any) -> None:
        if torch.compiler.is_compiling():
            return
        made: list[list[Tensor]] = []

        def pick(index: int | None) -> Tensor:
            if not made:
                made.append(self.layers())
            return torch.cat(made[0], dim=1) if index is None else made[0][index]

        for index, keeper in self.keepers:
            keeper.give(lambda index=index: pick(index))  # type: ignore[misc]


@dataclass
class _Place:
    """Where in an output the weights are; found once and remembered.

    Args:
        heads: how many there are, 0 if nobody knows.
        path: to the weights.
        turned: whether their axes are in another order than ours.
        key: the place of weights that are in our order in a tuple, if that is where they are.
    """

    heads: int
    path: tuple[Any, ...] | None = None
    turned: bool = False
    key: int | None = None

    def arrange(self, weights: Any) -> Tensor:
        weights = _as_tensor(weights)
        if weights.ndim != 4:
            return weights
        arranged = query_behind_head(weights, self.heads)
        self.turned = arranged is not weights
        return arranged

    def find(self, output: Any) -> Tensor:
        if isinstance(output, Tensor) and output.ndim == 2:
            return output
        self.path, whole = _recognise(dict(_tensors(output))), output
        for key in self.path:
            output = output[key]
        weights = self.arrange(output)
        if isinstance(whole, tuple) and len(self.path) == 1 and not self.turned:
            self.key = self.path[0]
        return weights


def _tensors(output: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Tensor]]:
    if isinstance(output, Tensor):
        yield path, output
    elif isinstance(output, Mapping):
        for name, item in output.items():
            yield from _tensors(item, (*path, name))
    elif isinstance(output, list | tuple):
        for number, item in enumerate(output):
            yield from _tensors(item, (*path, number))


def _recognise(tensors: Mapping[tuple[Any, ...], Tensor]) -> tuple[Any, ...]:
    fit: list[tuple[bool, int, tuple[Any, ...]]] = []
    for path, x in tensors.items():
        if x.ndim not in (3, 4) or not x.is_floating_point() or not x.numel() or (x < 0).any():
            continue
        sums = x.sum(-1, dtype=torch.float32)
        # A query that may attend to nothing has a row of zeros.
        sums = sums[sums != 0]
        exact = bool(sums.numel() and ((sums - 1).abs() < EXACT).all())
        if exact or (sums.numel() and abs(float(sums.mean()) - 1) < THINNED):
            fit.append((not exact, -x.ndim, path))
    if not fit:
        shapes = ", ".join(str(tuple(x.shape)) for x in tensors.values()) or "no tensor"
        raise ValueError(
            f"it returned {shapes}, and expected were weights (row, head, query, key) whose last "
            "axis sums to 1; give 'path:attribute', or a function that returns the weights"
        )
    return min(fit, key=lambda found: found[:2])[2]


def _as_tensor(weights: Any) -> Tensor:
    if not isinstance(weights, Tensor):
        raise TypeError(f"expected weights as a tensor, found {type(weights).__name__}")
    return weights


def find_own(model: nn.Module, attention: str | Sequence[str]) -> list[OwnPoint]:
    """Return the modules that paths name, in the order of the paths.

    Raises:
        AttnscopeError: there is no such module; it says which names are near.
    """
    modules = dict(model.named_modules())
    points: dict[str, OwnPoint] = {}
    for given in [attention] if isinstance(attention, str) else attention:
        path, _, attribute = given.partition(":")
        if "*" in path:
            names = [name for name in modules if _matches(name, path)]
        else:
            names = [path] if path in modules else []
        if not names:
            raise AttnscopeError(_no_module(given, path, modules))
        points.update((name, OwnPoint(name, modules[name], attribute)) for name in names)
    return list(points.values())


def _matches(name: str, pattern: str) -> bool:
    parts, wanted = name.split("."), pattern.split(".")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def _no_module(given: str, path: str, modules: Mapping[str, nn.Module]) -> str:
    start, _, last = path.rpartition(".")
    if start in modules and start and hasattr(modules[start], last):
        hint = f" '{start}' is a module, and '{last}' its attribute: write '{start}:{last}'."
    else:
        close = difflib.get_close_matches(path, [name for name in modules if name], 3, 0.4)
        near = ", ".join(f"'{name}'" for name in close)
        hint = f" The nearest names are {near}." if near else ""
    return f"attention='{given}': the model has no module '{path}'.{hint}"
