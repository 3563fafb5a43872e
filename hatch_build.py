"""The README as a package index shows it: links and images by address, or not at all.

A package index has no folder ``docs``. Whoever publishes says where the files can be seen::

    ATTNSCOPE_FILES=https://host/owner/attnscope/raw/v0.2.0 python -m build

Without an address images are left out, and what linked to a file is plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


class ReadmeHook(MetadataHookInterface):
    """Sets ``readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put addresses in the place of paths."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_an_index(text, os.environ.get("ATTNSCOPE_FILES", "")),
        }


def for_an_index(text: str, address: str) -> str:
    """Return a README whose links and images do not need the repository beside them."""

    def written(found: re.Match[str]) -> str:
        image, label, path = found.groups()
        if address:
            return f"{image}[{label}]({address.rstrip('/')}/{path})"
        return "" if image else label

    return LINK.sub(written, text)
