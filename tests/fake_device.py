"""A device that is none: tensors of the CPU that refuse to meet those that were not put on it.

It does what a GPU would do to a program, on real numbers: an operation on tensors from both sides
is an error, and what passes between the sides is counted. So whole runs can be made on it, and have
to end as on the CPU, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_flatten

from attnscope.engines import placement

FAKE: Any = SimpleNamespace(type="fake")
NAMED = torch.device("privateuseone")
"""The same for programs that move tensors by ``.to(device)``, which takes no other object."""
ATEN = torch.ops.aten
IS_CPU = Tensor.is_cpu.__get__  # type: ignore[attr-defined]
MAY_MIX = {
    ATEN.copy_.default: "copied",
    ATEN.index.Tensor: "looked up",
    ATEN.index_put_.default: "looked up",
    ATEN.index_put.default: "looked up",
    ATEN._index_put_impl_.default: "looked up",
}
"""Operations that a GPU allows on tensors from both sides."""
PACKING = {
    ATEN._pack_padded_sequence.default,
    ATEN._pack_padded_sequence_backward.default,
    ATEN._pad_packed_sequence.default,
}
"""Operations that want lengths, and give counts, on the host."""


def _storages(tensor: Tensor) -> list[Any]:
    if tensor.layout is torch.strided:
        return [tensor.untyped_storage()]
    with _disable_current_modes():
        if tensor.layout is torch.sparse_coo:
            parts = [tensor._indices(), tensor._values()]
        else:
            parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        return [part.untyped_storage() for part in parts]


class Sides(TorchDispatchMode):
    """Knows which memory is on the device, and counts what passes."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[int, Any] = {}
        self.passed: Counter[str] = Counter()
        self.within = 0
        """Calls under way of functions that were given a tensor of the device."""

    def is_there(self, tensor: Tensor) -> bool:
        return any(each._cdata in self.there for each in _storages(tensor))

    def put(self, tensor: Tensor) -> Tensor:
        # Storages are held, so that no other one gets the address of one that is gone.
        self.there |= {each._cdata: each for each in _storages(tensor)}
        return tensor

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, Tensor)]
        sides = [self.is_there(t) for t in tensors]
        out = func(*args, **(kwargs or {}))
        if not tensors and self.within and isinstance(out, Tensor):
            return self.put(out)  # It is made beside the tensors that the function was given.
        if not any(sides):
            return out
        if func in PACKING:
            parts = out if isinstance(out, tuple) else (out,)
            self.put(parts[0])
            return out
        if func is ATEN._local_scalar_dense.default:
            self.passed["read"] += 1
        # A number may come from anywhere.
        elif not all(s for s, t in zip(sides, tensors, strict=True) if t.ndim):
            if func not in MAY_MIX:
                raise RuntimeError(f"{func} on tensors of two devices")
            self.passed[MAY_MIX[func]] += 1
            if func is ATEN.copy_.default:
                return out
        for each in tree_flatten(out)[0]:
            if isinstance(each, Tensor):
                self.put(each)
        return out


@contextmanager
def fake_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sides]:
    """Have studies trained on the device that is none."""
    sides = Sides()

    def copy(tensor: Tensor, device: Any) -> Tensor:
        sides.passed["moved"] += 1
        there = tensor.detach().clone()
        if device is FAKE:
            sides.put(there)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(there, requires_grad=tensor.requires_grad)
        return there.requires_grad_(tensor.requires_grad)

    class Placement(placement.Placement):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func == IS_CPU:
                return not sides.is_there(args[0])
            # A program says "cpu" or asks a tensor, which says that it is on the CPU.
            if func in placement.BORN and isinstance((kwargs or {}).get("device"), torch.device):
                kwargs = {name: value for name, value in kwargs.items() if name != "device"}
            if func is Tensor.to and any(isinstance(each, torch.device) for each in args):
                return self.moved(args[0])  # to where another tensor is
            given = tree_flatten((args, kwargs))[0]
            if func not in placement.BORN and any(
                isinstance(each, Tensor) and sides.is_there(each) for each in given
            ):
                sides.within += 1
                try:
                    return super().__torch_function__(func, types, args, kwargs)
                finally:
                    sides.within -= 1
            return super().__torch_function__(func, types, args, kwargs)

        def born(self, func: Any, args: Any, kwargs: Any) -> Tensor:
            return sides.put(func(*args, **kwargs))

        def moved(self, tensor: Tensor) -> Tensor:
            sides.passed["moved"] += 1
            return sides.put(tensor.clone())

        def home(self, tensor: Tensor) -> Tensor:
            sides.passed["read"] += sides.is_there(tensor)
            return tensor.clone()

    with monkeypatch.context() as patch, sides:
        patch.setattr(placement, "Placement", Placement)
        patch.setattr(placement, "_copy", copy)
        patch.setattr(placement, "is_on", lambda tensor, device: sides.is_there(tensor))
        patch.setattr("attnscope.experiment.study.wanted", lambda: FAKE)
        yield sides


@contextmanager
def fake_device_by_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sides]:
    """Have programs that move tensors themselves, by ``.to(NAMED)``, meet the device that is none.

    A tensor that is asked for its device says that it is on the CPU. So within this whatever is
    made or moved by a ``torch.device`` (``device=ids.device``) goes to the device, and what says
    nothing is on the host; ``.cpu()`` brings back, and only the host has ``.numpy()``.
    """
    sides = Sides()

    class Moves(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = dict(kwargs or {})
            if func is Tensor.to and any(_is_device(each) for each in (*args, *kwargs.values())):
                return self.to(args, kwargs)
            if func is Tensor.cpu:
                sides.passed["read"] += sides.is_there(args[0])
                with _disable_current_modes():
                    return args[0].clone()
            if func in (Tensor.numpy, Tensor.__array__) and sides.is_there(args[0]):
                raise TypeError("only a tensor of the host is an array")
            if func in placement.BORN and _is_device(kwargs.get("device")):
                del kwargs["device"]
                return sides.put(func(*args, **kwargs))
            return func(*args, **kwargs)

        def to(self, args: Any, kwargs: dict[str, Any]) -> Tensor:
            given = [*args[1:], *kwargs.values()]
            home = any(each == "cpu" for each in given if isinstance(each, str))
            with _disable_current_modes():
                made = args[0].clone()
                for each in given:
                    made = made.to(each) if isinstance(each, torch.dtype) else made
            sides.passed["read" if home else "moved"] += 1
            return made if home else sides.put(made)

    def module_to(module: torch.nn.Module, device: Any) -> torch.nn.Module:
        for tensor in (*module.parameters(), *module.buffers()):
            sides.passed["moved"] += 1
            sides.put(tensor.detach())
        return module

    with monkeypatch.context() as patch, sides, Moves():
        patch.setattr(torch.nn.Module, "to", module_to)
        yield sides


def _is_device(each: Any) -> bool:
    return isinstance(each, torch.device) or (isinstance(each, str) and each == "cpu")
