"""Where the data lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from attnscope.datasets.record import PACKED, DataFile, DataSet
from attnscope.errors import AttnscopeError

VARIABLE = "ATTNSCOPE_DATA"


def data_dir(given: str | Path | None = None) -> Path:
    """Return the data folder: the one given, then ``$ATTNSCOPE_DATA``, then the user's cache.

    The folder need not exist yet.
    """
    if given:
        return home(given)
    if named := os.environ.get(VARIABLE):
        return home(named)
    return cache_dir() / "attnscope"


def home(path: str | Path) -> Path:
    """Return a path with ``~`` and ``~name`` as the folder they stand for.

    Raises:
        AttnscopeError: nobody knows which folder that is.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise AttnscopeError(
            f"'{path}': {error} Expected a path from the root or from here."
        ) from error


def locate(file: DataFile, folder: Path) -> Path | None:
    """Return where a file lies, as it is or packed by gzip or xz, or None.

    The published name comes first, then its alternatives.
    """
    return next(
        (path for name in (file.path, *file.alternatives) if (path := at(name, folder))), None
    )


def at(name: str, folder: Path) -> Path | None:
    """Return ``folder/name`` if it is there, else ``folder/name.gz`` or ``.xz``, else None."""
    candidates = (folder / f"{name}{suffix}" for suffix in ("", *PACKED))
    return next((path for path in candidates if os.path.exists(path)), None)


def require(dataset: DataSet, folder: Path) -> dict[DataFile, Path]:
    """Return where every file of a data set lies.

    Raises:
        AttnscopeError: files are missing; the sentence says what to run.
    """
    if dataset.kind == "generated":
        raise AttnscopeError(f"{dataset.title} has no files. {dataset.note}")
    found = {file: path for file in dataset.files if (path := locate(file, folder))}
    missing = [file for file in dataset.files if file not in found]
    if missing:
        if all(file.url for file in missing):
            remedy = f"run `attnscope data get {dataset.key}`"
        else:
            remedy = f"it must be fetched by hand (`attnscope data {dataset.key}` says how)"
        names = ", ".join(file.path for file in missing)
        raise AttnscopeError(
            f"{dataset.title} is not in '{folder}' (missing: {names}): {remedy}, "
            f"or name the folder that has it by --data-dir or {VARIABLE}."
        )
    return found


def cache_dir() -> Path:
    """Return the folder in which the system keeps what can be fetched again."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else home("~") / "AppData" / "Local"
    if sys.platform == "darwin":
        return home("~") / "Library" / "Caches"
    # The XDG specification says that a relative path must be ignored.
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else home("~") / ".cache"
