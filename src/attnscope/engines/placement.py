"""A problem on a device, for as long as it is trained.

A study builds its models and data on the CPU, so that they begin with the same numbers wherever
they are trained. :func:`placed` then finds every tensor that a run can reach (parameters, buffers,
what a loss or a reading has captured) and puts its copy on the device in its place; tensors that
are born on the way are put beside them. So a study says nothing of devices. At the end everything
lies where it lay before, and the model holds what it has learned.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnscope.errors import AttnscopeError
from attnscope.tasks.host import HOST, carry_note

LEAVES = (str, bytes, int, float, complex, type(None), type, ModuleType, np.ndarray)
"""What holds no tensor, or belongs to everybody."""
BORN = frozenset(
    {
        torch.arange,
        torch.as_tensor,
        torch.empty,
        torch.empty_strided,
        torch.eye,
        torch.full,
        torch.linspace,
        torch.logspace,
        torch.ones,
        torch.rand,
        torch.randint,
        torch.randn,
        torch.randperm,
        torch.scalar_tensor,
        torch.tensor,
        torch.tril_indices,
        torch.triu_indices,
        torch.zeros,
    }
)
"""Functions that make a tensor out of no other one."""


class _Move:
    """Puts other tensors in the place of those that can be reached from an object.

    Attributes, lists, dictionaries and closures are changed in place, so that whoever holds them
    sees it, and :meth:`undo` puts back what was there; tuples and partial functions are made anew.
    Modules, classes and the global names of functions belong to everybody and are not followed.

    Args:
        swap: returns what stands for a tensor, perhaps itself.
    """

    def __init__(self, swap: Callable[[Tensor], Tensor]) -> None:
        self.swap = swap
        self.done: dict[int, Any] = {}
        self.held: list[Any] = []
        self.changes: list[Callable[[], object]] = []

    def __call__(self, each: Any) -> Any:
        """Return what stands for an object."""
        if isinstance(each, LEAVES):
            return each
        if id(each) not in self.done:
            self.held.append(each)  # An object that is gone would leave its number to another.
            self.done[id(each)] = each
            self.done[id(each)] = self._moved(each)
        return self.done[id(each)]

    def undo(self) -> None:
        """Put back what was there."""
        for change in reversed(self.changes):
            change()

    def _moved(self, each: Any) -> Any:
        if isinstance(each, Tensor):
            return self.swap(each)
        if isinstance(each, tuple):
            parts = [self(part) for part in each]
            if all(a is b for a, b in zip(parts, each, strict=True)):
                return each
            return type(each)(*parts) if hasattr(each, "_fields") else tuple(parts)
        if isinstance(each, partial):
            return partial(self(each.func), *self(each.args), **self(dict(each.keywords)))
        if isinstance(each, list):
            for place, part in enumerate(each):
                self._put(each, place, part, self(part))
        elif isinstance(each, dict):
            for key, part in list(each.items()):
                self._put(each, key, part, self(part))
        elif isinstance(each, FunctionType):
            for cell in each.__closure__ or ():
                with contextlib.suppress(ValueError):  # of a name that has no value yet
                    self._put_cell(cell, self(cell.cell_contents))
            self(each.__kwdefaults__)
            if each.__defaults__ is not None and self(each.__defaults__) is not each.__defaults__:
                before, each.__defaults__ = each.__defaults__, self(each.__defaults__)
                self.changes.append(partial(setattr, each, "__defaults__", before))
        elif isinstance(each, MethodType):
            self(each.__self__), self(each.__func__)
        elif isinstance(getattr(each, "__dict__", None), dict):
            self(each.__dict__)
        return each

    def _put(self, holder: Any, key: Any, before: Any, after: Any) -> None:
        if after is not before:
            holder[key] = after
            self.changes.append(partial(holder.__setitem__, key, before))

    def _put_cell(self, cell: CellType, after: Any) -> None:
        before = cell.cell_contents
        if after is not before:
            cell.cell_contents = after
            self.changes.append(partial(setattr, cell, "cell_contents", before))


@contextlib.contextmanager
def placed(device: torch.device, model: nn.Module, *others: Any) -> Iterator[tuple[Any, ...]]:
    """Have a model, and all that others can reach, on a device; then where they were.

    Args:
        device: where; nothing happens for the CPU.
        model: what learns.
        others: losses, readings and whatever else is called on the way.

    Yields:
        What stands for the others: the same objects but for tuples.

    Raises:
        AttnscopeError: the device cannot hold such numbers.
    """
    if device.type == "cpu":
        yield others
        return
    pairs: list[tuple[Tensor, Tensor]] = []

    def there(tensor: Tensor) -> Tensor:
        # What is a step of a computation belongs to it, and what lies elsewhere was put there.
        if is_on(tensor, device) or not tensor.is_leaf:
            return tensor
        pairs.append((tensor, _copy(tensor, device)))
        return carry_note(*pairs[-1])

    def back(tensor: Tensor) -> Tensor:
        return _copy(tensor, torch.device("cpu")) if is_on(tensor, device) else tensor

    move = _Move(there)
    learns = {id(each) for each in (*model.parameters(), *model.buffers())}
    try:
        move(model)
        with (placement := Placement(device)), _arrays_moved(placement), _hosting(placement):
            yield move(others)
    finally:
        move.undo()
        with torch.no_grad():
            for home, moved in pairs:
                if id(home) in learns and device.type != "meta":
                    home.copy_(moved)
        # What a loss has computed once and kept would meet tensors of the CPU the next time.
        if device.type != "meta":
            _Move(back)((model, *others))


def _copy(tensor: Tensor, device: torch.device) -> Tensor:
    try:
        there = tensor.detach().to(device)
    except (TypeError, RuntimeError) as error:
        raise AttnscopeError(
            f"a tensor of {tensor.dtype} and shape {tuple(tensor.shape)} cannot be on "
            f"'{device}' ({str(error).splitlines()[0]}): expected another --device"
            + (", for mps has no double precision." if device.type == "mps" else ".")
        ) from error
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(there, requires_grad=tensor.requires_grad)
    return there.requires_grad_(tensor.requires_grad)


def is_on(tensor: Tensor, device: torch.device) -> bool:
    """Return whether a tensor is on a device."""
    return tensor.device.type == device.type


@contextlib.contextmanager
def _arrays_moved(placement: Placement) -> Iterator[None]:
    """Have what is made of NumPy arrays on the device too; no mode of PyTorch hears of that."""
    before = torch.from_numpy
    torch.from_numpy = lambda ndarray: (
        before(ndarray) if placement.resting else placement.moved(before(ndarray))
    )
    try:
        yield
    finally:
        torch.from_numpy = before


@contextlib.contextmanager
def _hosting(placement: Placement) -> Iterator[None]:
    """Let tasks make batches on the host; see :mod:`attnscope.tasks.host`."""
    token = HOST.set(placement)
    try:
        yield
    finally:
        HOST.reset(token)


class Placement(TorchFunctionMode):
    """Puts tensors that are born within it on a device.

    What is drawn from a generator is drawn where the generator is and then moved, so that it is the
    same on every device.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device, self.resting = device, False

    def on_host(self, make: Callable[[], Any]) -> Any:
        """Return what is made with numbers of the host, on the device."""
        if self.resting:
            return make()
        self.resting = True
        try:
            made = make()
        finally:
            self.resting = False
        return _Move(lambda tensor: carry_note(tensor, self.moved(tensor)))(made)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Add the device to what makes a tensor and does not say where."""
        kwargs = kwargs or {}
        if self.resting:
            return func(*args, **kwargs)
        if func is Tensor.numpy or func is Tensor.__array__:
            return func(self.home(args[0].detach()), *args[1:], **kwargs)
        if func not in BORN or kwargs.get("device") is not None or kwargs.get("out") is not None:
            return func(*args, **kwargs)
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != self.device.type:
            return self.moved(func(*args, **kwargs))
        return self.born(func, args, kwargs)

    def born(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Make a tensor on the device."""
        made: Tensor = func(*args, **{**kwargs, "device": self.device})
        return made

    def moved(self, tensor: Tensor) -> Tensor:
        """Return a tensor's copy on the device."""
        return tensor.to(self.device)

    def home(self, tensor: Tensor) -> Tensor:
        """Return a tensor's copy on the CPU."""
        return tensor.cpu()
