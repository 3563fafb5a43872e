"""How large a study is run: a name, and what it is for."""

from __future__ import annotations

from typing import Literal

Scale = Literal["quick", "paper"]
SCALES: dict[str, str] = {
    "quick": "for a coffee break",
    "paper": "the paper's own values (default)",
}
"""Every scale but ``paper`` is a mapping of settings that a study may declare under that name."""
