"""What is installed, and too old: a sentence instead of the first thing that breaks."""

from __future__ import annotations

import re

from attnscope.errors import AttnscopeError

OLDEST_TORCH = (2, 9)
"""The oldest PyTorch that the tests were run with."""


def check_torch(version: str) -> None:
    """Refuse a PyTorch that is too old.

    Raises:
        AttnscopeError: it is.

    >>> check_torch("2.13.0+cpu")
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise AttnscopeError(
            f"PyTorch {version} is installed: expected {oldest} or later, the oldest that "
            f"attnscope is tested with. `pip install 'torch>={oldest}'` brings it."
        )
