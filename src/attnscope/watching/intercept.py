r"""Attention wherever a model computes it: its calls are heard while a forward pass runs.

Two kinds of calls are attention. A fused one says so itself: ``F.scaled_dot_product_attention``,
``flex_attention``, ``F.multi_head_attention_forward``; its weights are computed beside it. The
other is a softmax, and most are no attention. One is, if

- what goes in was made of a product of two activations (queries and keys), and
- what comes out is multiplied with a third (values), and summed over the axis of the softmax.

So routers (their scores are a linear map of one activation), pooling (likewise), distributions over
words or classes (nothing is multiplied) and mixtures of experts (no queries) are left out. Tensors
are followed from the product to the softmax, and from there to the values, through masks, scales,
position biases, soft caps, dropout, talking heads and changes of shape; the weights are those that
meet the values.

A call belongs to the innermost module whose code is running. No hook is set and nothing in the
model is replaced: the functions themselves run as they are, and their results are handed on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from attnscope.watching.attach_method import count_heads
from attnscope.watching.call_weights import (
    dot_product_weights,
    flex_weights,
    multihead_call_weights,
)
from attnscope.watching.weight_axes import arranged, einsum_order, ordered

SOFTMAX = frozenset(
    {torch.softmax, F.softmax, Tensor.softmax, torch.special.softmax, torch._softmax}
)
PRODUCTS = frozenset(
    {
        torch.matmul,
        Tensor.matmul,
        Tensor.__matmul__,
        Tensor.__rmatmul__,
        torch.bmm,
        Tensor.bmm,
        torch.baddbmm,
        Tensor.baddbmm,
        torch.mm,
        Tensor.mm,
        torch.einsum,
    }
)
ADDED = frozenset({torch.baddbmm, Tensor.baddbmm})
"""Their first argument is added to the product."""
ENDS = frozenset(
    {F.layer_norm, torch.layer_norm, F.rms_norm, torch.rms_norm, F.group_norm, F.batch_norm}
    | {F.embedding, torch.embedding}
)
"""What comes out of them is no score any more, and no weight."""
SHELLS = (nn.Softmax, nn.Softmax2d, nn.Dropout, nn.Identity)
"""Modules that run a call for another one, which holds them."""

DOT_PRODUCT, FLEX, MULTIHEAD, WRITTEN = (
    "scaled_dot_product_attention",
    "flex_attention",
    "multi_head_attention_forward",
    "softmax",
)
FUSED: dict[Any, tuple[str, Callable[..., Tensor]]] = {
    F.scaled_dot_product_attention: (DOT_PRODUCT, dot_product_weights),
    F.multi_head_attention_forward: (MULTIHEAD, multihead_call_weights),
}


@dataclass(frozen=True, eq=False)
class Call:
    """Attention that was computed.

    Args:
        name: path of the innermost module.
        module: that module.
        number: which of the module's calls in this forward pass it is, from 0.
        way: which function computed it.
        weights: computes ``(row, head, query, key)``.
    """

    name: str
    module: nn.Module
    number: int
    way: str
    weights: Callable[[], Tensor]


class Interceptor:
    """Hears where a model attends.

    Args:
        model: what is watched.
        rows: of the batches that it is shown, 0 if nobody knows.
    """

    def __init__(self, model: nn.Module, rows: int = 0) -> None:
        self.model, self.rows = model, rows
        self.keepers: dict[tuple[str, int], list[Any]] = {}
        self.covered: set[str] = set()
        """Paths of modules that are read in another way."""
        self._names = {id(module): name for name, module in reversed(list(model.named_modules()))}
        self._modules = dict(model.named_modules())

    @contextmanager
    def listening(self, hear: Callable[[Call], None] | None = None) -> Iterator[None]:
        """Hear the calls of one forward pass: hand weights to those who keep them.

        Args:
            hear: is told of every call in place of the keepers.
        """
        with ExitStack() as stack:
            if "torch.nn.attention.flex_attention" in sys.modules:
                # It compiles itself, and a compiler cannot be listened to.
                stack.enter_context(torch.compiler.set_stance("force_eager"))
            stack.enter_context(_Listener(self, hear or self._hand))
            yield

    def keep(self, name: str, number: int, keeper: Any) -> Callable[[], None]:
        """Have the weights of a call kept; return what ends that."""
        self.keepers.setdefault((name, number), []).append(keeper)

        def forget() -> None:
            self.keepers[name, number].remove(keeper)

        return forget

    def running(self) -> tuple[str, nn.Module] | None:
        """Return the innermost module whose code is running; ``None`` if it is read otherwise."""
        frame = sys._getframe(1)
        while frame is not None:
            names = frame.f_code.co_varnames
            if names and names[0] == "self":
                holder = frame.f_locals.get("self")
                path = self._names.get(id(holder))
                if path is not None and isinstance(holder, nn.Module):
                    if path in self.covered:
                        return None
                    if not isinstance(holder, SHELLS):
                        return path, holder
            frame = frame.f_back  # type: ignore[assignment]
        return "", self.model

    def heads_of(self, name: str) -> int:
        """Return the number of heads that a module says it has, or one that holds it."""
        while True:
            module = self._modules.get(name)
            if module is not None and (count := count_heads(module)):
                return count
            if not name:
                return 0
            name = name.rpartition(".")[0]

    def holders(self) -> frozenset[int]:
        """Return where the memory of the model's parameters begins."""
        return frozenset(_memory(p) for p in self.model.parameters())

    def _hand(self, call: Call) -> None:
        for keeper in self.keepers.get((call.name, call.number), ()):
            keeper.give(call.weights)


@dataclass(eq=False)
class _Softmax:
    """A softmax of scores, on its way to the values.

    Args:
        axis: which one sums to 1.
        met: whether it has met values.
    """

    axis: int
    met: bool = False


@dataclass(frozen=True, eq=False)
class _Trace:
    """What a tensor was made of.

    Args:
        of: the softmax that it comes from; ``None`` for scores.
        order: which axis of the softmax each of its axes is; ``None`` if they are others.
        whole: the last tensor before they became others, axes as the softmax has them.
    """

    of: _Softmax | None = None
    order: tuple[int, ...] | None = None
    whole: Tensor | None = None


_SCORES = _Trace()


@dataclass(eq=False)
class _Listener(TorchFunctionMode):
    """Hears every function of PyTorch during one forward pass."""

    at: Interceptor
    hear: Callable[[Call], None]
    counts: dict[str, int] = field(default_factory=dict)
    broken: bool = False

    def __post_init__(self) -> None:
        super().__init__()
        self.traces = WeakIdKeyDictionary()
        self.parameters = self.at.holders()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        result = func(*args, **given)
        if not self.broken:
            try:
                self._hear(func, args, given, result)
            except Exception:
                # Whatever a model does with tensors, its forward pass goes on.
                self.broken = True
        return result

    def _hear(
        self, func: Any, args: tuple[Any, ...], given: Mapping[str, Any], result: Any
    ) -> None:
        if func in SOFTMAX:
            self._hear_softmax(args, given, result)
        elif func in PRODUCTS:
            self._hear_product(func, args, given, result)
        elif func in FUSED:
            way, weights = FUSED[func]
            self._tell(way, lambda: weights(*args, **given))
        elif getattr(func, "_name", "") == FLEX:
            self._tell(FLEX, lambda: flex_weights(*args, **given))
        elif self.traces and func not in ENDS:
            self._follow(func, args, given, result, func is F.linear and not _mixes_heads(args))

    def _tell(self, way: str, weights: Callable[[], Tensor]) -> None:
        found = self.at.running()
        if found is None:
            return
        name, module = found
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        heads, rows = self.at.heads_of(name), self.at.rows
        self.hear(Call(name, module, number, way, lambda: arranged(weights(), heads, rows)))

    def _hear_softmax(
        self, args: tuple[Any, ...], given: Mapping[str, Any], result: Tensor
    ) -> None:
        scores = args[0] if args else given.get("input")
        if self.traces.get(scores) is not _SCORES:
            return
        axis = args[1] if len(args) > 1 else given.get("dim", -1)
        axis = -1 if axis is None else int(axis)
        softmax = _Softmax(axis % result.ndim)
        self.traces[result] = _Trace(softmax, tuple(range(result.ndim)))

    def _hear_product(
        self, func: Any, args: tuple[Any, ...], given: Mapping[str, Any], result: Tensor
    ) -> None:
        tensors = _tensors((args, tuple(given.values())))
        factors = tensors[1:] if func in ADDED else tensors
        learned = any(_memory(factor) in self.parameters for factor in factors)
        for place, factor in enumerate(factors):
            trace = self.traces.get(factor)
            if trace is not None and trace.of is not None and not learned:
                if not trace.of.met:
                    self._meet(func, args, factors, place, trace)
                return
        if not learned:
            self.traces[result] = _SCORES
        elif result.ndim > 3 and any(factor.shape == result.shape for factor in factors):
            # Heads may be mixed by a matrix of their own.
            self._follow(func, args, given, result)

    def _meet(
        self, func: Any, args: tuple[Any, ...], factors: Sequence[Tensor], place: int, trace: _Trace
    ) -> None:
        """Weights meet values."""
        softmax, weights = trace.of, factors[place]
        assert softmax is not None
        if trace.order is None:
            assert trace.whole is not None
            weights, key = trace.whole, softmax.axis
        else:
            key = trace.order.index(softmax.axis)
        last = weights.ndim - 1
        if trace.order is not None and func is torch.einsum and isinstance(args[0], str):
            shapes = [tuple(factor.shape) for factor in factors]
            order = einsum_order(args[0], place, shapes, key)
            if order is None:
                return
            before, queries = order
        else:
            if trace.order is not None and key != last - place:
                return
            queries = [last if key != last else last - 1]
            before = [axis for axis in range(last + 1) if axis not in (key, *queries)]
        softmax.met = True
        self._tell(WRITTEN, lambda: ordered(weights, before, queries, key))

    def _follow(
        self,
        func: Any,
        args: tuple[Any, ...],
        given: Mapping[str, Any],
        result: Any,
        no_scores: bool = False,
    ) -> None:
        """What is made of scores or weights is scores or weights again."""
        source = trace = None
        for tensor in _tensors((args, tuple(given.values()))):
            found = self.traces.get(tensor)
            if found is not None and (trace is None or found.of is not None):
                source, trace = tensor, found
        if source is None or trace is None or (no_scores and trace.of is None):
            return
        made = [args[0]] if func is Tensor.__setitem__ else _tensors((result,))
        for tensor in made:
            if tensor is source or not tensor.is_floating_point():
                continue
            self.traces[tensor] = _SCORES if trace.of is None else _turned(trace, source, tensor)


def _turned(trace: _Trace, source: Tensor, made: Tensor) -> _Trace:
    """Return the trace of what was made of weights: with their axes, in another order, or lost."""
    if trace.order is None:
        return trace
    order: tuple[int, ...] | None = None
    if made.ndim == source.ndim and made.data_ptr() == source.data_ptr():
        here = list(zip(made.shape, made.stride(), strict=True))
        there = list(zip(source.shape, source.stride(), strict=True))
        if here == there:
            order = trace.order
        elif sorted(here) == sorted(there):
            order = tuple(trace.order[there.index(axis)] for axis in here)
    elif made.shape == source.shape:
        order = trace.order
    if order is not None:
        return _Trace(trace.of, order)
    back = [trace.order.index(axis) for axis in range(source.ndim)]
    return _Trace(trace.of, None, source.permute(back))


def _tensors(values: Any, depth: int = 3) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif depth and isinstance(value, tuple | list):
            found += _tensors(value, depth - 1)
    return found


def _mixes_heads(args: tuple[Any, ...]) -> bool:
    """Whether a linear map is of heads to as many heads, at every pair of positions."""
    x, weight = args[:2]
    return bool(x.ndim > 3 and weight.shape[0] == weight.shape[1])


def _memory(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        # Some have none of their own, such as nested and scripted ones.
        return -1
