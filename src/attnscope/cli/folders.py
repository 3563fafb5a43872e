"""What a folder holds, told by the name of its manifest, before anything heavy is loaded."""

from __future__ import annotations

from pathlib import Path


def is_sweep(folder: str | Path) -> bool:
    """Return whether a folder is that of a sweep."""
    return (Path(folder) / "sweep.json").is_file()
