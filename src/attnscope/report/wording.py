"""The words in which findings are told, the same in the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnscope.claims import Finding

SYMBOLS = {"holds": "✓", "fails": "✗", "undecided": "?"}


def number(value: float) -> str:
    """Write a number with four significant digits.

    >>> number(0.0058312), number(float("nan")), number(-12)
    ('0.005831', 'n/a', '-12')
    """
    return "n/a" if math.isnan(value) else f"{value:.4g}"


def span(low: float, high: float) -> str:
    """Write an interval, or nothing if it has no ends.

    >>> span(0.5, 0.75)
    '0.5 to 0.75'
    """
    return "" if math.isnan(low) or math.isnan(high) else f"{number(low)} to {number(high)}"


def ends(finding: Finding) -> str:
    """Write our interval, or nothing where there is none: one value is no interval of itself."""
    return span(finding.low, finding.high) if finding.seeds > 1 else ""


def interval(finding: Finding) -> str:
    """Say what our interval is: its ends, its kind and the number of seeds."""
    found = ends(finding)
    kind = finding.interval if found else "no interval"
    return f"{found} ({kind}, n = {finding.seeds})".lstrip()


def control_passes(finding: Finding) -> bool:
    """Say whether the control held where it must fail, so that the claim proves nothing."""
    return not finding.control_fails and not finding.control_undecided


def control_class(finding: Finding) -> str:
    """Return the CSS class of the control's outcome on a page."""
    if finding.control_fails:
        return "must"
    return "alarm" if control_passes(finding) or math.isnan(finding.control) else "soft"


def control_outcome(finding: Finding) -> str:
    """Say whether the control failed, loudly if it did not."""
    if finding.control_fails:
        return "fails, as it must"
    if math.isnan(finding.control):
        return "CONTROL HAS NO VALUE: this claim proves nothing"
    if finding.control_undecided:
        few = "one seed has no interval" if finding.seeds == 1 else "its interval is too wide"
        return f"undecided: {few}, so the control neither fails nor passes"
    return "CONTROL PASSES: this claim proves nothing"


def summary(findings: Sequence[Finding]) -> str:
    """Count the verdicts in one line.

    A claim whose control did not fail counts by its verdict and is named after it.
    """
    if not findings:
        return "No claims were examined"
    counts = {
        verdict: sum(finding.verdict == verdict for finding in findings) for verdict in SYMBOLS
    }
    total = len(findings)
    parts = [
        f"{counts['holds']} of {total} {'claim holds' if total == 1 else 'claims hold'}",
        f"{counts['fails']} {'fails' if counts['fails'] == 1 else 'fail'}",
        f"{counts['undecided']} undecided",
    ]
    told = [parts[0]] + [
        part for part, key in zip(parts[1:], ("fails", "undecided"), strict=True) if counts[key]
    ]
    unsure = sum(finding.control_undecided for finding in findings)
    if unsure:
        told.append(f"{unsure} {'control' if unsure == 1 else 'controls'} undecided")
    blunt = sum(control_passes(finding) for finding in findings)
    if blunt:
        told.append(f"{blunt} {'control does' if blunt == 1 else 'controls do'} not fail")
    return ", ".join(told)
