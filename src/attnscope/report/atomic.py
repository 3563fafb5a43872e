"""Files that are either the old one or the new one, never half of it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> Path:
    """Write beside ``path`` and rename over it; make the folder if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened by hand and not by tempfile, whose files only their owner may read.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
