"""The folder of a recording: a name that nobody has, and a lock on it."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path

from attnscope.trajectory.folder import RunFolder, beside
from attnscope.trajectory.lock import Busy, Lock


def new_folder(out: str | Path) -> RunFolder:
    """Return the folder for a recording; one that exists is left alone, and a new name found."""
    path = beside(Path(out))
    if path != Path(out):
        warnings.warn(
            f"attnscope: '{out}' exists and is left as it is; this recording goes to '{path}'.",
            stacklevel=3,
        )
    return RunFolder(path)


def claimed(path: Path) -> tuple[RunFolder, Lock]:
    """Make the folder of a recording, or one beside it if somebody else was faster, and lock it."""
    while True:
        place = beside(path)
        place.mkdir(parents=True, exist_ok=True)
        with suppress(Busy):
            lock = Lock(place, "attnscope.watch")
            if [each.name for each in place.iterdir()] == [lock.path.name]:
                return RunFolder(place), lock
            lock.release()  # They are done already.
