"""Evaluating a model without a trace: random numbers, modes, statistics and attributes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Put a model into evaluation mode; afterwards everything is as it was.

    That is: the flag of every single module, buffers (by value and by identity), attributes that
    modules keep between forward passes, the random states of PyTorch on all devices, of NumPy and
    of Python, and how PyTorch runs attention and mixed precision. Compiled parts run as they are
    written. Gradients are the caller's business: ``no_grad``, or ``torch.autograd.grad``.
    """
    everything = list(model.modules())
    modules = [each for each in everything if not isinstance(each, torch.jit.ScriptModule)]
    attributes = [dict(vars(module)) for module in modules]
    buffers = [_Buffer(module, name) for module in modules for name in module._buffers]
    states = _random_states()
    with ExitStack() as stack:
        stack.callback(_set_random_states, states)
        stack.callback(_put_back, modules, attributes, buffers)
        if len(modules) < len(everything):
            stack.enter_context(_scripted_undisturbed(set(everything) - set(modules)))
        # Encoder layers of PyTorch have a second path in evaluation, which hooks get in the way of.
        stack.callback(
            torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled()
        )
        torch.backends.mha.set_fastpath_enabled(False)
        # Weights that were cast without gradients would be reused by the training step around us.
        stack.callback(
            torch.set_autocast_cache_enabled,
            torch.is_autocast_cache_enabled(),
        )
        torch.set_autocast_cache_enabled(False)
        if any(_is_compiled(module) for module in modules):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        for module in modules:
            module.__dict__["training"] = False
        yield


@contextmanager
def _scripted_undisturbed(modules: set[nn.Module]) -> Iterator[None]:
    """Do for scripted modules what can be done: their attributes are not ours to see."""
    modes = {module: module.training for module in modules}
    kept = {x: x.detach().clone() for module in modules for x in module.buffers(recurse=False)}
    for module in modules:
        module.train(False)
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training
        with torch.no_grad():
            for tensor, copy in kept.items():
                tensor.copy_(copy)


def bare(model: nn.Module) -> nn.Module:
    """Return the model inside what ``torch.compile``, data parallelism and engines wrap around it.

    Wrappers hold what they wrap as ``_orig_mod`` or as ``module``, and nothing of their own beside.
    FSDP is left as it is: outside of it there are pieces of parameters only.
    """
    while True:
        held = dict(model.named_children())
        inside = held.get("_orig_mod", getattr(model, "_orig_mod", None))
        if inside is None and set(held) == {"module"}:
            own = dict(model.named_parameters(recurse=False))
            inside = None if own else held["module"]
        if not isinstance(inside, nn.Module):
            return model
        model = inside


def _is_compiled(module: nn.Module) -> bool:
    return "_orig_mod" in module._modules or module._compiled_call_impl is not None


class _Buffer:
    """A buffer as it was."""

    def __init__(self, module: nn.Module, name: str) -> None:
        self.module, self.name = module, name
        self.tensor = module._buffers[name]
        self.copy: Tensor | None = None
        if self.tensor is not None and not self.tensor.is_inference():
            self.copy, self.version = self.tensor.detach().clone(), self.tensor._version

    def put_back(self) -> None:
        self.module._buffers[self.name] = self.tensor
        if self.tensor is None or self.copy is None or self.tensor._version == self.version:
            return
        with torch.no_grad():
            self.tensor.copy_(self.copy)


def _put_back(
    modules: list[nn.Module], attributes: list[dict[str, Any]], buffers: list[_Buffer]
) -> None:
    for module, before in zip(modules, attributes, strict=True):
        now = vars(module)
        for name in [name for name in now if name not in before]:
            del now[name]
        for name, value in before.items():
            if now.get(name) is not value:
                now[name] = value
    known = {(id(buffer.module), buffer.name) for buffer in buffers}
    for module in modules:
        for name in [name for name in module._buffers if (id(module), name) not in known]:
            del module._buffers[name]
    for buffer in buffers:
        buffer.put_back()


def _random_states() -> tuple[Any, ...]:
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
    return torch.get_rng_state(), cuda, mps, np.random.get_state(), random.getstate()  # noqa: NPY002


def _set_random_states(states: tuple[Any, ...]) -> None:
    cpu, cuda, mps, numpy, python = states
    torch.set_rng_state(cpu)
    if cuda is not None:
        torch.cuda.set_rng_state_all(cuda)
    if mps is not None:
        torch.mps.set_rng_state(mps)
    np.random.set_state(numpy)  # noqa: NPY002
    random.setstate(python)
