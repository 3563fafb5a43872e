"""Where something is the case, in words."""

from __future__ import annotations

from collections.abc import Sequence


def listed(numbers: Sequence[int], what: str, total: int) -> str:
    """Say which of several things: ``layer 0 of 2``, ``all 6 layers``, ``layers 0, 2 and 3``."""
    if total == 1:
        return f"the only {what}"
    if len(numbers) == total:
        return f"all {total} {what}s"
    if len(numbers) == 1:
        return f"{what} {numbers[0]}"
    return f"{what}s {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
