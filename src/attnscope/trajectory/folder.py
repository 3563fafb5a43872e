"""A run's folder on disk: what lies where, and what it says about itself.

    RUN/
      run.json             study, spec, seeds, versions, status: the manifest
      trajectory.zarr/     groups observables, params, data, theory (Zarr v3)
      runs/0007.json       how far run 7 is, and how it ended
      checkpoints/0007.safetensors   where run 7 can go on from
      report.html, figures/, tables/, findings.json

Every file appears whole or not at all: it is written beside its place and then moved there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.files import write_bytes

FORMAT = 1
"""Version of this layout. A reader refuses a run with a larger one."""

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

    def state_path(self, run: int) -> Path:
        """How far a run is."""
        return self.path / "runs" / f"{run:04d}.json"

    def checkpoint_path(self, run: int) -> Path:
        """Where a run can go on from."""
        return self.path / "checkpoints" / f"{run:04d}.safetensors"

    def manifest(self) -> dict[str, Any]:
        """Read the manifest.

        Raises:
            AttnscopeError: there is none, it cannot be read, or a newer version wrote it.
        """
        try:
            manifest: dict[str, Any] = json.loads(self.manifest_path.read_text())
            version = manifest["format"]
            newer = version > FORMAT
        except (FileNotFoundError, NotADirectoryError):
            what = "no such folder" if not self.path.exists() else "there is no run.json in it"
            raise AttnscopeError(
                f"'{self.path}' is not a run: {what}. Expected a folder that `attnscope run` wrote."
            ) from None
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError):
            raise AttnscopeError(
                f"'{self.manifest_path}' is not a manifest of a run: expected JSON with a format "
                "number, as `attnscope run` writes it."
            ) from None
        if newer:
            raise AttnscopeError(
                f"'{self.path}' was written by attnscope {manifest.get('attnscope', '?')} in "
                f"format {version}; this version reads up to format {FORMAT}. Expected a run of "
                "this version or an older one: upgrade attnscope to read it."
            )
        return manifest

    def state(self, run: int) -> dict[str, Any]:
        """Read how far a run is; empty if it has not begun."""
        try:
            state: dict[str, Any] = json.loads(self.state_path(run).read_text())
            return state
        except FileNotFoundError:
            return {}


def write_json(path: Path, value: Any) -> None:
    """Write JSON atomically."""
    write_bytes(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())
