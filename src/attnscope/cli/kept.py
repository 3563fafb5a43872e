"""Findings that a run kept."""

from __future__ import annotations

import json
from pathlib import Path

from attnscope.claims import Finding
from attnscope.errors import AttnscopeError


def kept_findings(path: Path) -> list[Finding]:
    """Read ``findings.json``.

    Raises:
        AttnscopeError: it is damaged, or of another version.
    """
    try:
        return [Finding.from_json(entry) for entry in json.loads(path.read_text())]
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError, AttributeError):
        raise AttnscopeError(
            f"'{path}' cannot be read: expected the findings that this version of attnscope keeps. "
            "Run again with --resume to decide the claims anew."
        ) from None
