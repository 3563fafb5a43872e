"""Attention of Hugging Face models, whatever implementation they use.

A model of ``transformers`` 5 asks its ``AttentionInterface`` for the function that computes
attention, and says which function to take by default: its own, written out ("eager"). That question
is where weights are taken: the model's implementation runs as it is, and its own eager function is
called beside it, without dropout and without gradients. So the weights are the model's own, with
its scaling, position biases, soft caps, sinks and grouped heads, under ``sdpa`` as under any other
name, and the configuration is never touched.

``transformers`` is an extra. Nothing here imports it before a model has done so.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.watching.attach_method import Keep, Keeper, MethodPatch, count_heads
from attnscope.watching.moment import Handle


@dataclass(frozen=True, eq=False)
class HuggingFacePoint:
    """A module that computes attention through the ``AttentionInterface``.

    Args:
        name: path of the module.
        module: the module.
        note: what else there is to say about it.
    """

    name: str
    module: nn.Module
    note: str = ""

    @property
    def heads(self) -> int:
        """Number of heads."""
        return count_heads(self.module)

    @property
    def kind(self) -> str:
        """What it is, with the implementation it uses."""
        config = getattr(self.module, "config", None)
        implementation = getattr(config, "_attn_implementation", None) or "eager"
        return f"Hugging Face {type(self.module).__name__}, {implementation}"

    def attach(self, keep: Keep) -> Handle:
        """Have weights kept whenever the module runs; see :class:`AttentionPoint`."""
        return _INTERFACE.attach(self.module, Keeper(self.name, keep))


def find_huggingface(model: nn.Module) -> Iterator[HuggingFacePoint]:
    """Yield every module that asks the interface, in the order in which the model holds them."""
    if "transformers.modeling_utils" not in sys.modules or not _has_interface():
        return
    asking = {kind for kind in set(map(type, model.modules())) if _asks_interface(kind)}
    for name, module in model.named_modules():
        if type(module) in asking:
            yield HuggingFacePoint(name, module)


def _has_interface() -> bool:
    """Whether models ask by a method; before transformers 5 they look into a dictionary instead."""
    try:
        return hasattr(_interface_class(), "get_interface")
    except ImportError:
        return False


def _asks_interface(kind: type) -> bool:
    """Whether code of a class calls ``get_interface`` of an ``AttentionInterface``."""
    interface = _interface_class()
    for parent in kind.__mro__:
        for method in vars(parent).values():
            if not inspect.isfunction(method):
                continue
            function = inspect.unwrap(method)
            names = function.__code__.co_names
            if "get_interface" in names and any(
                isinstance(function.__globals__.get(name), interface) for name in names
            ):
                return True
    return False


def _interface_class() -> type:
    from transformers import AttentionInterface

    return AttentionInterface


def _replace_interface(original: Callable[..., Any]) -> Callable[..., Any]:
    def get_interface(self: Any, attn_implementation: str, default: Callable[..., Any]) -> Any:
        return partial(_attend, original(self, attn_implementation, default), default)

    return get_interface


_INTERFACE = MethodPatch(_interface_class, "get_interface", _replace_interface)


def _attend(
    function: Callable[..., Any],
    eager: Callable[..., Any],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Compute attention with a model's implementation, and its weights beside."""
    result = function(module, query, key, value, attention_mask, *args, **kwargs)

    def weights() -> Tensor:
        if function is eager and not module.training:
            own: Tensor = result[1]
            return own
        given = dict(kwargs)
        if "dropout" in given:
            given["dropout"] = 0.0
        mask = attention_mask
        if function is not eager:
            mask = eager_mask(module, query, key, attention_mask, kwargs)
        with _evaluating(module):
            # Values do not matter; one column of them is enough for the function to run.
            made: Tensor = eager(module, query, key, value[..., :1], mask, *args, **given)[1]
        return made

    for keeper in _INTERFACE.of(module):
        keeper.give(weights)
    return result


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Switch dropout off; with it random numbers would be drawn."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def eager_mask(
    module: nn.Module, query: Tensor, key: Tensor, mask: Any, given: dict[str, Any]
) -> Tensor | None:
    """Return a mask of any implementation as an eager function takes it: numbers to add.

    Args:
        module: the attention.
        query: ``(row, head, query, width)``.
        key: ``(row, head, key, width)``.
        mask: nothing, ``(row, key)`` of ones and zeros for flash attention, a block mask for flex
            attention, or four axes of booleans or of numbers to add.
        given: other arguments of the call, among them ``is_causal`` and ``sliding_window``.
    """
    queries, keys = query.shape[2], key.shape[2]
    if isinstance(mask, Tensor) and mask.ndim == 4 and mask.dtype != torch.bool:
        return mask
    if isinstance(mask, Tensor) and mask.ndim == 4:
        allowed = mask
    elif mask is None or isinstance(mask, Tensor):
        allowed = _positions(module, queries, keys, given, query.device)
        if mask is not None:
            allowed = allowed & mask[:, None, None, -keys:].bool()
    else:
        from torch.nn.attention.flex_attention import create_mask

        allowed = create_mask(
            mask.mask_mod, query.shape[0], query.shape[1], queries, keys, device=str(query.device)
        )
    if mask is None and bool(allowed.all()):
        return None
    lowest = torch.finfo(query.dtype).min
    return torch.zeros_like(allowed, dtype=query.dtype).masked_fill_(~allowed, lowest)


def _positions(
    module: nn.Module, queries: int, keys: int, given: dict[str, Any], device: torch.device
) -> Tensor:
    """Return which keys a query may see by position alone; the last query sees the last key."""
    causal = given.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    if not causal or queries == 1:
        return torch.ones(1, 1, queries, keys, dtype=torch.bool, device=device)
    here = torch.arange(keys - queries, keys, device=device)[:, None]
    there = torch.arange(keys, device=device)
    allowed = there <= here
    window = given.get("sliding_window")
    if window is not None:
        allowed &= there > here - window
    return allowed[None, None]
