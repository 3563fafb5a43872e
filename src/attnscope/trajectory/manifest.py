"""The manifest of a run: what it is, what made it, and how it stands."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

from attnscope.trajectory.documents import write_json
from attnscope.trajectory.folder import FORMAT, GROWING, RunFolder
from attnscope.trajectory.metadata import Layout, read_metadata

WATCHED = "watched"
"""The experiment of a run that is somebody's own training."""
LIBRARIES = ("torch", "numpy", "scipy", "xarray", "zarr")


def write_manifest(
    folder: RunFolder,
    *,
    experiment: str,
    spec: Mapping[str, Any],
    runs: Sequence[tuple[str, int]],
    grid: float | None,
    lr: float | None,
    command: str = "",
    status: str = "not begun",
    arrays: Sequence[str] = (),
    sums: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the manifest of a new run.

    Args:
        folder: the run's folder.
        experiment: name of the study, or :data:`WATCHED`.
        spec: its settings, JSON values.
        runs: case and seed of each run.
        grid: time of one step; ``None`` for a flow, which has none.
        lr: learning rate; ``None`` if time is no multiple of one.
        command: the command line that asked for it.
        status: how far it is, as a sentence.
        arrays: names of those that are there already, ``group/variable``.
        sums: what :func:`sums_of` says of them.
    """
    from attnscope import __version__

    manifest = {
        "format": FORMAT,
        "attnscope": __version__,
        "study": experiment,
        "spec": dict(spec),
        "runs": [{"case": case, "seed": seed} for case, seed in runs],
        "grid": grid,
        "lr": lr,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in LIBRARIES},
        },
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": command,
        "status": status,
        "arrays": sorted(arrays),
        "sums": dict(sums),
    }
    write_json(folder.manifest_path, manifest)


def sums_of(folder: RunFolder, arrays: Sequence[str]) -> dict[str, str]:
    """Return the checksums of the chunks of arrays that are written at once and stay as they are.

    So a chunk that takes the place of another one is seen. Those of readings are in the states.
    """
    sums = {}
    for name in arrays:
        metadata = read_metadata(folder.store / name / "zarr.json", sealed=True)
        layout = Layout(folder.store / name, metadata)
        if name.split("/")[0] not in GROWING or "run" not in layout.dims:
            sums[name] = layout.sums()
    return sums


def update_manifest(folder: RunFolder, *, sync: bool = False, **changes: Any) -> None:
    """Write other values for some entries of a manifest, such as ``status``."""
    write_json(folder.manifest_path, {**folder.manifest(), **changes}, sync=sync)
