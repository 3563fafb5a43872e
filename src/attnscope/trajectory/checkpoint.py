"""Checkpoints as safetensors: nothing in them is ever executed."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from attnscope.engines.sink import Checkpoint
from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically; Python's floats survive JSON to the last bit."""
    tensors = {name: value.detach().clone() for name, value in checkpoint.tensors.items()}
    write_bytes(path, save(tensors, metadata={"values": json.dumps(checkpoint.values)}))


def load_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint; ``None`` if there is none.

    Raises:
        AttnscopeError: the file is damaged.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            values = json.loads(file.metadata()["values"])
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise AttnscopeError(
            f"'{path}' is not a checkpoint ({error}): delete it to begin that run anew."
        ) from error
    return Checkpoint(tensors, values)
