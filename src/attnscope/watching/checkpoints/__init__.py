"""A trajectory after the fact: from weights that a training has saved.

Only safetensors are read, in which there is nothing to execute. One checkpoint is in memory at a
time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from attnscope.engines.device import find, wanted
from attnscope.errors import AttnscopeError
from attnscope.watching import watch
from attnscope.watching.checkpoints.loading import build_from, load
from attnscope.watching.checkpoints.revisions import cached_repository, find_revisions
from attnscope.watching.checkpoints.saved import Saved, find_checkpoints

__all__ = ["Saved", "find_checkpoints", "from_checkpoints"]


def from_checkpoints(
    folder: str | Path,
    out: str | Path,
    record: Sequence[Any] | None = None,
    *,
    build: Callable[[], nn.Module] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    device: str | None = None,
    **options: Any,
) -> Path:
    """Make the trajectory of a training from its checkpoints.

    Every checkpoint is a reading. Losses, gradients and lengths of steps are not known. Steps whose
    weights are identical are found by their hash, and a warning says which they are.

    Args:
        folder: where the checkpoints lie, see :func:`find_checkpoints`; or a repository in the
            local cache of Hugging Face, as ``ORG/NAME`` or its folder, whose revisions are steps.
        out: folder for the trajectory.
        record: what is recorded, as for :func:`attnscope.watch`.
        build: makes the model; from ``config.json`` beside the weights unless given, by classes of
            transformers alone.
        progress: hears how many checkpoints of how many were read.
        device: where the model is run, as for :func:`attnscope.run`; the probe batch follows it,
            and readings come back.
        **options: ``probe`` and the others of :func:`attnscope.watch`.

    Returns:
        The folder of the trajectory.

    Raises:
        AttnscopeError: there is nothing to read, a checkpoint does not fit the model, or there is
            no such device.
    """
    where = wanted() if device is None else find(device)
    repository = cached_repository(folder)
    checkpoints = find_checkpoints(folder) if repository is None else find_revisions(repository)
    model = (build or build_from(checkpoints[0]))()
    if not isinstance(model, nn.Module):
        raise AttnscopeError(
            f"what was to build the model returned a {type(model).__name__}: expected a "
            "torch.nn.Module."
        )
    model.eval().to(where)
    hashes: dict[str, list[int]] = {}
    hashes.setdefault(load(model, checkpoints[0]), []).append(checkpoints[0].step)
    scope = watch(model, out, record, every=1, begin=False, **options)
    scope.count = checkpoints[0].step
    scope.spec["checkpoints"] = str(folder)
    with scope:
        progress(1, len(checkpoints))
        for number, saved in enumerate(checkpoints[1:], 2):
            hashes.setdefault(load(model, saved), []).append(saved.step)
            scope.at(saved.step)
            if not scope.recording:
                raise AttnscopeError(f"{scope.status}: expected a place that can be written.")
            progress(number, len(checkpoints))
        same = [steps for steps in hashes.values() if len(steps) > 1]
        scope.spec["identical"] = same
    if same:
        groups = "; ".join(", ".join(map(str, steps)) for steps in same)
        warnings.warn(
            f"some steps have identical weights: {groups}. They are {sum(map(len, same))} of "
            f"{len(checkpoints)} checkpoints.",
            stacklevel=2,
        )
    return scope.folder.path
