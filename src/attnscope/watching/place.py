"""The folder of a recording: a name that nobody has, and a lock on it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnscope import __version__
from attnscope.trajectory import staging
from attnscope.trajectory.arrays import Store
from attnscope.trajectory.folder import RunFolder, beside
from attnscope.trajectory.lock import Busy, Lock
from attnscope.trajectory.manifest import WATCHED, write_manifest


def new_folder(out: str | Path) -> RunFolder:
    """Return the folder for a recording; one that exists is left alone, and a new name found."""
    path = beside(Path(out))
    if path != Path(out):
        warnings.warn(
            f"attnscope: '{out}' exists and is left as it is; this recording goes to '{path}'.",
            stacklevel=3,
        )
    return RunFolder(path)


def claimed(path: Path, spec: Mapping[str, Any], status: str) -> tuple[RunFolder, Lock, Store]:
    """Make the folder of a recording, or one beside it if somebody else was faster, and lock it.

    It appears with all that a run has: a manifest, a state and a store without arrays.

    Args:
        path: where it should go.
        spec: what was asked for.
        status: how far it is, as a sentence.
    """
    stores: list[Store] = []

    def fill(new: Path) -> None:
        folder = RunFolder(new)
        about = {"study": WATCHED, "attnscope": __version__}
        stores.append(Store(folder.store, about))
        folder.write_state(0, {})
        write_manifest(
            folder,
            experiment=WATCHED,
            spec=spec,
            runs=[("watched", 0)],
            grid=1.0,  # Time counts steps.
            lr=1.0,
            status=status,
        )

    while True:
        folder = RunFolder(beside(path))
        with suppress(Busy):
            lock = staging.new_folder(folder.path, "attnscope.watch", fill)
            stores[-1].moved(folder.store)
            return folder, lock, stores[-1]
