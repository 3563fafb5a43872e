"""Published statements, decided by numbers, each beside a control that must fail."""

from attnscope.claims.claim import (
    Claim,
    Criterion,
    Finding,
    above,
    below,
    call,
    examine,
    examine_all,
    within,
)
from attnscope.claims.findings import Findings

__all__ = [
    "Claim",
    "Criterion",
    "Finding",
    "Findings",
    "above",
    "below",
    "call",
    "examine",
    "examine_all",
    "within",
]
