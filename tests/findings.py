"""A finding for tests of whatever shows findings."""

from __future__ import annotations

from typing import Any

from attnscope.claims import Finding


def finding(**changes: Any) -> Finding:
    """Return a claim that holds, with some fields changed."""
    fields: dict[str, Any] = {
        "key": "sen",
        "sentence": "The norm follows the score.",
        "source": "Corollary 1",
        "paper": "coincides",
        "criterion": "< 0.02",
        "ours": 0.0058,
        "low": 0.0051,
        "high": 0.0066,
        "seeds": 5,
        "interval": "range over seeds",
        "verdict": "holds",
        "control_sentence": "With m = 5.",
        "control": 0.31,
        "control_low": 0.3,
        "control_high": 0.32,
        "control_fails": True,
        "reason": "",
        "measure": "",
    }
    return Finding(**{**fields, **changes})
