"""How large a study is run: a name, and what it is for."""

from __future__ import annotations

from typing import Literal

Scale = Literal["quick", "desk", "paper"]
SCALES: dict[str, str] = {
    "quick": "for a coffee break",
    "desk": "about an hour on two cores; the paper's own values where those take no longer",
    "paper": "the paper's own values (default)",
}
"""Every scale but ``paper`` is a mapping of settings that a study may declare under that name."""
