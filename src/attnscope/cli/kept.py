"""Findings that a run kept."""

from __future__ import annotations

import json
from pathlib import Path

from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.folder import RunFolder
from attnscope.trajectory.inventory import read_noted


def kept_findings(path: Path) -> list[Finding]:
    """Read ``findings.json``.

    Raises:
        AttnscopeError: it is damaged, or of another version.
    """
    try:
        found = json.loads(read_noted(RunFolder(path.parent), path))
        return [Finding.from_json(entry) for entry in found]
    except (ValueError, TypeError, AttributeError, RecursionError, KeyError, DamagedFile):
        raise AttnscopeError(
            f"'{path}' cannot be read: expected the findings that this version of attnscope keeps. "
            "`attnscope check --repair` decides the claims anew."
        ) from None
