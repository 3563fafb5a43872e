"""A point that is under way, as bytes: whoever goes on with it needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from attnscope.engines import Checkpoint
from attnscope.sweeps.piece import Piece
from attnscope.trajectory.documents import DamagedFile

CURRENT, ENGINE, ABOUT = "current", "engine", "about"


@dataclass(frozen=True)
class Unfinished:
    """Runs that are complete, and one that is not.

    Args:
        pieces: the complete runs by their numbers.
        current: the number of the run that is under way.
        partial: what it has read.
        checkpoint: where its engine goes on.
    """

    pieces: Mapping[int, Piece] = field(default_factory=dict)
    current: int | None = None
    partial: Piece | None = None
    checkpoint: Checkpoint | None = None

    def to_bytes(self) -> bytes:
        """Return everything as a file of safetensors: nothing in it is ever executed."""
        tensors: dict[str, Tensor] = {}
        about: dict[str, Any] = {"current": self.current, "pieces": {}}
        parts = {str(number): piece for number, piece in self.pieces.items()}
        if self.partial is not None:
            parts[CURRENT] = self.partial
        for name, piece in parts.items():
            about["pieces"][name] = {"about": piece.about, "state": piece.state}
            for array, values in piece.arrays.items():
                tensors[f"{name}:{array}"] = torch.from_numpy(values.copy())
        if self.checkpoint is not None:
            about["values"] = self.checkpoint.values
            for name, tensor in self.checkpoint.tensors.items():
                tensors[f"{ENGINE}:{name}"] = tensor.detach().clone().contiguous()
        text = json.dumps(about).encode()
        tensors[ABOUT] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        return save(tensors)

    @classmethod
    def from_bytes(cls, data: bytes) -> Unfinished:
        """Rebuild what :meth:`to_bytes` wrote.

        Raises:
            DamagedFile: it is something else.
        """
        try:
            tensors = load(data)
            about = json.loads(bytes(tensors.pop(ABOUT).tolist()))
            pieces: dict[str, Piece] = {}
            for name, known in about["pieces"].items():
                arrays = {
                    each.split(":", 1)[1]: tensor.numpy()
                    for each, tensor in tensors.items()
                    if each.startswith(f"{name}:")
                }
                pieces[name] = Piece(arrays, known["about"], known["state"])
            partial = pieces.pop(CURRENT, None)
            engine = {
                name.split(":", 1)[1]: tensor
                for name, tensor in tensors.items()
                if name.startswith(f"{ENGINE}:")
            }
            checkpoint = Checkpoint(engine, about["values"]) if "values" in about else None
            numbered = {int(name): piece for name, piece in pieces.items()}
            return cls(numbered, about["current"], partial, checkpoint)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DamagedFile(Path("a point under way"), f"is damaged ({error})") from None
