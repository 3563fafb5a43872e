"""Folders that appear whole under their name, or not at all.

A folder is made beside its place, under a hidden name with a lock in it, and then moved there. One
that is replaced changes places with the new one in a single step where the system can do that
(Linux: ``renameat2`` with ``RENAME_EXCHANGE``); elsewhere it steps aside first, and comes back if
the new one does not arrive.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.files import disk_full_as_sentence, onto_disk
from attnscope.trajectory.lock import Busy, Lock

HIDDEN = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{16}\.attnscope(?P<aside>-aside)?")
"""Names of what is not yet under its own, not any more, or has stepped aside for a moment."""
EXCHANGE = 2
HERE = -100


def staged(place: Path, what: str) -> tuple[Path, Lock]:
    """Make an empty folder beside a place, with a lock in it.

    Raises:
        AttnscopeError: nothing can be made there.
    """
    while True:
        new = _hidden(place)
        try:
            with disk_full_as_sentence(place):
                new.mkdir(parents=True)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AttnscopeError(
                f"'{place}' cannot be made ({reason}): expected a place to write to."
            ) from error
        # Somebody who clears away what dead processes left may take it for such a thing.
        with contextlib.suppress(FileNotFoundError, Busy):
            return new, Lock(new, what)


def new_folder(
    place: Path, what: str, fill: Callable[[Path], None], old: Lock | None = None
) -> Lock:
    """Fill a new folder, move it to its place, and return its lock.

    Args:
        place: where it goes; nothing or an empty folder is there, or else what ``old`` locks.
        what: what is done there, in words for whoever else wants to write.
        fill: makes what it holds.
        old: the lock on what is there and will be replaced.

    Raises:
        Busy: somebody else was faster.
    """
    clear(place.parent)
    new, lock = staged(place, what)
    try:
        fill(new)
        if old is None:
            _enter(new, place)
        else:
            replace(new, place)
        lock.moved(place)
        onto_disk(place.parent)
    except BaseException:
        lock.release()
        raise
    finally:
        # What is under the hidden name now is the old folder, or the new one that failed.
        shutil.rmtree(new, ignore_errors=True)
        if old is not None:
            old.release()
    return lock


def _enter(new: Path, place: Path) -> None:
    try:
        os.rename(new, place)
    except OSError as error:
        if not place.exists():
            raise
        raise Busy(
            f"'{place}' was made by another process just now: expected nobody else there. Choose "
            "another --out."
        ) from error


def replace(new: Path, place: Path) -> None:
    """Let two folders change places."""
    if _exchange(new, place):
        return
    aside = _hidden(place, "-aside")
    os.rename(place, aside)
    try:
        os.rename(new, place)
    except BaseException:
        os.rename(aside, place)
        raise
    os.rename(aside, new)


def _hidden(place: Path, aside: str = "") -> Path:
    return place.with_name(f".{place.name}.{secrets.token_hex(8)}.attnscope{aside}")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; return whether the system could."""
    if sys.platform != "linux":
        return False
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    done: int = function(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE)
    return done == 0


def clear(parent: Path) -> None:
    """Take away what dead processes left beside runs, and bring back what stepped aside.

    Only folders with a hidden name of ours, in which nobody alive holds the lock.
    """
    with contextlib.suppress(OSError):
        for path in parent.iterdir():
            match = HIDDEN.fullmatch(path.name)
            if match is not None and path.is_dir() and not path.is_symlink():
                _clear(path, parent / match["name"] if match["aside"] else None)


def _clear(path: Path, back: Path | None) -> None:
    """Take a folder away, or back to where it stepped aside from, unless somebody alive has it."""
    try:
        lock = Lock(path, "clearing away what a dead process left", patience=0.0)
    except (AttnscopeError, OSError):
        return
    with lock:
        if back is None or back.exists():
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.rename(path, back)
            lock.moved(back)
