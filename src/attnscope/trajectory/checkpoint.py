"""Checkpoints as safetensors: nothing in them is ever executed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import google_crc32c
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from attnscope.engines.sink import Checkpoint
from attnscope.files import write_bytes
from attnscope.trajectory.documents import DamagedFile

ADVICE = "Delete it to begin that run anew."


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically; Python's floats survive JSON to the last bit."""
    tensors = {name: value.detach().clone() for name, value in checkpoint.tensors.items()}
    values = json.dumps(checkpoint.values)
    about = {"values": values, "crc32c": _checksum(tensors, values), "run": path.stem}
    write_bytes(path, save(tensors, metadata=about), sync=True)


def load_checkpoint(path: Path) -> Checkpoint | None:
    """Read a checkpoint; ``None`` if there is none.

    Raises:
        DamagedFile: the file is not what was written.
    """
    if not path.exists():
        return None
    if not path.is_file():  # Opening a pipe would wait for somebody who writes to it.
        raise DamagedFile(path, "is not a checkpoint (it is not an ordinary file)", ADVICE)
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = file.metadata()
            checkpoint = Checkpoint(tensors, json.loads(about["values"]))
    except (SafetensorError, KeyError, TypeError, ValueError, OSError, RecursionError) as error:
        raise DamagedFile(path, f"is not a checkpoint ({error})", ADVICE) from error
    # Older versions wrote no checksum.
    if about.get("crc32c", said := _checksum(tensors, about["values"])) != said:
        raise DamagedFile(path, "is damaged (it does not fit its checksum)", ADVICE)
    if about.get("run", path.stem) != path.stem:
        raise DamagedFile(path, "is the checkpoint of another run", ADVICE)
    return checkpoint


def _checksum(tensors: Mapping[str, Tensor], values: str) -> str:
    """Return the CRC-32C of numbers, names, shapes and values."""
    sum = google_crc32c.Checksum(values.encode())
    for name, tensor in sorted(tensors.items()):
        array = tensor.detach().cpu().contiguous()
        sum.update(f"{name} {array.dtype} {tuple(array.shape)}".encode())
        sum.update(array.flatten().view(torch.uint8).numpy().tobytes() if array.numel() else b"")
    return str(sum.hexdigest().decode())
