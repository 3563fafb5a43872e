"""Where tensors lie while a model is trained."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError

VARIABLE = "ATTNSCOPE_DEVICE"
"""It reaches worker processes and nodes, and a spec stays free of where tensors lie."""
AUTO = "auto"
KINDS = ("cpu", "cuda", "mps")


def wanted() -> torch.device:
    """Return the device that models are trained on here.

    Raises:
        AttnscopeError: what ``ATTNSCOPE_DEVICE`` says is none, or it is not there.
    """
    return find(os.environ.get(VARIABLE) or "cpu")


def find(name: str) -> torch.device:
    """Return a device by its name; ``auto`` is the first of cuda, mps and cpu that is there.

    Raises:
        AttnscopeError: there is no such device.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == AUTO:
        return torch.device(next((kind for kind in there if there[kind]), "cpu"))
    kind, _, number = name.partition(":")
    if kind not in KINDS or (number and not number.isdigit()) or (kind != "cuda" and number):
        raise AttnscopeError(
            f"device = '{name}': expected 'cpu', 'cuda', 'cuda:1', 'mps' or 'auto'."
        )
    if not there.get(kind, True):
        raise AttnscopeError(
            f"device = '{name}': this computer has none that PyTorch {torch.__version__} can use. "
            "Expected 'cpu', or 'auto' for what is there."
        )
    if number and int(number) >= torch.cuda.device_count():
        raise AttnscopeError(
            f"device = '{name}': expected 'cuda:0' to 'cuda:{torch.cuda.device_count() - 1}'."
        )
    return torch.device(name)


def random_state(device: torch.device) -> dict[str, Tensor]:
    """Return the state of a device's own random numbers, for a checkpoint; none of the CPU."""
    if device.type == "cuda":
        return {"random.cuda": torch.cuda.get_rng_state(device)}
    return {"random.mps": torch.mps.get_rng_state()} if device.type == "mps" else {}


def restore_random_state(device: torch.device, saved: Mapping[str, Tensor]) -> None:
    """Go back to such a state, if the checkpoint was taken on a device of that kind."""
    if device.type == "cuda" and "random.cuda" in saved:
        torch.cuda.set_rng_state(saved["random.cuda"], device)
    elif device.type == "mps" and "random.mps" in saved:
        torch.mps.set_rng_state(saved["random.mps"])


@contextlib.contextmanager
def choosing(name: str | None, *, check: bool = True) -> Iterator[None]:
    """Have models trained on a device, in this process and in the workers it starts.

    Args:
        name: of the device; what ``ATTNSCOPE_DEVICE`` says unless given.
        check: whether it has to be on this computer, which for a cluster it has not.

    Raises:
        AttnscopeError: there is no such device.
    """
    if name is None:
        yield
        return
    if check:
        find(name)
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
