"""A run's folder on disk: what lies where, and what it says about itself.

    RUN/
      run.json             study, spec, seeds, versions, status: the manifest
      trajectory.zarr/     groups observables, params, data, theory (Zarr v3)
      runs/0007.json       how far run 7 is, and how it ended
      checkpoints/0007.safetensors   where run 7 can go on from
      report.html, figures/, tables/, findings.json, written.json
      .writer              who is writing, while somebody is

Every file appears whole or not at all: it is written beside its place and then moved there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.trajectory.documents import DamagedFile, read_json, read_sealed, write_json

FORMAT = 2
"""Version of this layout. A reader refuses a run with a larger one."""
CHECKED = 2
"""From this format on everything has a checksum or a digest, and the arrays are listed."""
HINT = "Expected JSON with a format number, as `attnscope run` writes it."

GROWING = ("observables", "params")
"""Groups whose chunks appear while runs go on; those of the others are all there at once."""
ALWAYS = ("data", *GROWING)
"""Groups that every store has, with arrays or without."""
ENDLESS = 2**40
"""Length that is written for arrays which still grow; the run's state says how long they are."""


@dataclass(frozen=True)
class RunFolder:
    """Paths inside a run's folder."""

    path: Path

    @property
    def manifest_path(self) -> Path:
        """The manifest; a folder is a run if and only if it is there."""
        return self.path / "run.json"

    @property
    def store(self) -> Path:
        """The Zarr store."""
        return self.path / "trajectory.zarr"

    @property
    def findings_path(self) -> Path:
        """What the claims came to."""
        return self.path / "findings.json"

    @property
    def report_path(self) -> Path:
        """The report."""
        return self.path / "report.html"

    @property
    def written_path(self) -> Path:
        """The digests of the report, its figures and tables."""
        return self.path / "written.json"

    def state_path(self, run: int) -> Path:
        """How far a run is."""
        return self.path / "runs" / f"{run:04d}.json"

    def checkpoint_path(self, run: int) -> Path:
        """Where a run can go on from."""
        return self.path / "checkpoints" / f"{run:04d}.safetensors"

    def manifest(self) -> dict[str, Any]:
        """Read the manifest.

        Raises:
            AttnscopeError: there is none, it is damaged, or a newer version wrote it.
        """
        path = self.manifest_path
        try:
            said = read_json(path)
        except DamagedFile as error:
            raise DamagedFile(path, f"is not a manifest of a run: it {error.what}", HINT) from None
        except FileNotFoundError:
            what = "no such folder" if not self.path.exists() else "there is no run.json in it"
            raise AttnscopeError(
                f"'{self.path}' is not a run: {what}. Expected a folder that `attnscope run` wrote."
            ) from None
        version = said.get("format") if isinstance(said, dict) else None
        if isinstance(version, int) and version > FORMAT:
            raise AttnscopeError(
                f"'{self.path}' was written by attnscope {said.get('attnscope', '?')} in "
                f"format {version}; this version reads up to format {FORMAT}. Expected a run of "
                "this version or an older one: upgrade attnscope to read it."
            )
        if not isinstance(version, int) or version < 1 or not _is_manifest(said):
            raise DamagedFile(path, "is not a manifest of a run", HINT)
        return read_sealed(path, sealed=version >= CHECKED)

    def write_state(self, run: int, state: Mapping[str, Any], *, sync: bool = False) -> None:
        """Write how far a run is."""
        write_json(self.state_path(run), {"run": run, **state}, sync=sync)

    def state(self, run: int, *, sealed: bool = False) -> dict[str, Any]:
        """Read how far a run is; empty if it has not begun.

        Args:
            run: its number.
            sealed: whether a digest has to be there; one that is there has to fit in any case.

        Raises:
            DamagedFile: what is there is not what was written.
        """
        try:
            state = read_sealed(self.state_path(run), sealed=sealed)
        except FileNotFoundError:
            return {}
        parts = (state.get(name, {}) for name in ("recorded", "chunks", "sums"))
        if not all(isinstance(part, dict) for part in parts) or state.get("run", run) != run:
            raise DamagedFile(self.state_path(run), "is not the state of that run")
        return state


def _is_manifest(said: dict[str, Any]) -> bool:
    """Return whether a manifest has what every manifest has."""
    runs = said.get("runs")
    return (
        isinstance(said.get("study"), str)
        and isinstance(said.get("spec"), dict)
        and isinstance(runs, list)
        and bool(runs)
        and all(
            isinstance(run, dict)
            and isinstance(run.get("case"), str)
            and isinstance(run.get("seed"), int)
            for run in runs
        )
        and all(
            said.get(name) is None or isinstance(said[name], int | float) for name in ("lr", "grid")
        )
        and all(isinstance(said.get(name, ""), str) for name in ("attnscope", "created", "status"))
        and isinstance(said.get("versions", {}), dict)
    )


def beside(path: Path) -> Path:
    """Return the first free name among ``x``, ``x-2``, ``x-3`` and so on."""
    number, name = 1, path
    while holds_something(name):
        number += 1
        name = path.with_name(f"{path.name}-{number}")
    return name


def holds_something(path: Path) -> bool:
    """Return whether a place is taken: by a file, a link, or a folder that is not empty."""
    try:
        return path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir())))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise AttnscopeError(
            f"'{path}' cannot be made ({reason}): expected a place to write to."
        ) from error
