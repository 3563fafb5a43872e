"""Which of several processes records."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from attnscope.errors import AttnscopeError

Ranks = Literal["first", "all"]
"""Which processes record: the first one, or each into a folder of its own."""

SHARDED = (
    "attnscope: the parameters are sharded over {count} processes, and a forward pass of one of "
    "them alone would wait for the others for ever, so the probe batch is not run. Readings that "
    "need it are left out; watch checkpoints of this training for them."
)


def rank_and_count() -> tuple[int, int]:
    """Return the number of this process and how many there are; 0 of 1 for a single one.

    Before processes have found each other, launchers such as ``torchrun`` say it by variables of
    the environment.
    """
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return 0, 1


def place_for(out: str | Path, ranks: str) -> Path | None:
    """Return the folder that this process records into; ``None`` if it does not.

    Raises:
        AttnscopeError: ``ranks`` is not one of :data:`Ranks`.
    """
    if ranks not in ("first", "all"):
        raise AttnscopeError(f"ranks={ranks!r}: expected 'first' or 'all'.")
    rank, count = rank_and_count()
    if ranks == "first" or count == 1:
        return Path(out) if rank == 0 else None
    return Path(out).with_name(f"{Path(out).name}-rank{rank}")


def sharded(model: nn.Module) -> bool:
    """Whether a forward pass needs all processes, because each has a piece of the parameters."""
    if rank_and_count()[1] == 1:
        return False
    return any(hasattr(p, "placements") or hasattr(p, "ds_id") for p in model.parameters()) or any(
        type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()
    )
