"""The cases of ``snell2021.keyword``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ONE_WAY = "one way, uniform"
BOTH_WAYS = "both ways, uniform"
ONE_WAY_LEARNED = "one way, learned"
BOTH_WAYS_LEARNED = "both ways, learned"


@dataclass(frozen=True)
class Kind:
    """An LSTM and its attention.

    Args:
        both_ways: the LSTM is bidirectional.
        attention: ``"uniform"`` as in section 6.1, or ``"learned"``.
    """

    both_ways: bool
    attention: Literal["learned", "uniform"]


CASES = {
    ONE_WAY: Kind(False, "uniform"),
    BOTH_WAYS: Kind(True, "uniform"),
    ONE_WAY_LEARNED: Kind(False, "learned"),
    BOTH_WAYS_LEARNED: Kind(True, "learned"),
}
"""The paper does not say which LSTM its Fig 7 is of."""
