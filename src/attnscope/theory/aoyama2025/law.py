r"""When induction heads appear: a power law in batch size and context length.

With B sequences in an update and a context of C tokens, the tokens read until then are

.. math::

    N = T \sqrt{B C}, \quad T = 10^{5.7} \quad (2025), \qquad
    N = A \, B^{0.63} C^{0.38}, \quad A = 7.5 \cdot 10^5 \quad (2026),

over 35 GPT-2 and Pythia models of 50M to 7B parameters, with 500 to 2 million tokens an update. In
updates it is N / (B C). The exponents are published; readers of the second fit quote A as 7.5e5 and
as 5.7e5, and both lie within the scatter given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from attnscope.errors import AttnscopeError

FitName = Literal["2025", "2026"]
SCATTER = 2.0
"""Factor by which single models lie off the law, either way. The correlation r = 0.98 in log space
is a factor of 1.3 over the models of the fit; but the second fit, which is the higher one for large
batches, is still half of what Pythia needed, and a prediction is of a model that is not in it."""
TOKENS_PER_UPDATE = (500, 2**21)
"""B C of the models that the law was fitted to."""


@dataclass(frozen=True)
class Fit:
    """N = factor × B^batch × C^context."""

    factor: float
    batch: float
    context: float


FITS: Mapping[FitName, Fit] = {
    "2025": Fit(10**5.7, 0.5, 0.5),
    "2026": Fit(7.5e5, 0.63, 0.38),
}
"""Both fits, by the year they were published."""


@dataclass(frozen=True)
class Emergence:
    """When an induction head is expected.

    Args:
        tokens: read until then.
        low: the earliest of the usual range, :data:`SCATTER` times fewer tokens.
        high: the latest of it.
        updates: steps of the optimizer until then.
        caution: a sentence if the law was never fitted to such an update, else empty.
    """

    tokens: float
    low: float
    high: float
    updates: float
    caution: str = ""

    def __str__(self) -> str:
        said = (
            f"an induction head after about {self.tokens:.2g} tokens ({self.updates:,.0f} updates; "
            f"usually {self.low:.2g} to {self.high:.2g} tokens)"
        )
        return f"{said}. {self.caution}" if self.caution else said


def emergence_tokens(batch: float, context: float, fit: FitName = "2025") -> Emergence:
    """Predict when induction heads appear.

    Args:
        batch: sequences in an update, gradient accumulation and devices counted in.
        context: tokens of a sequence.
        fit: ``"2025"``, or the refit ``"2026"``.

    Raises:
        AttnscopeError: batch or context is below 1, or there is no such fit.

    >>> print(emergence_tokens(1024, 2048))
    an induction head after about 7.3e+08 tokens (346 updates; usually 3.6e+08 to 1.5e+09 tokens)
    """
    for name, value in (("batch", batch), ("context", context)):
        if not 1 <= value < float("inf"):
            raise AttnscopeError(f"{name} = {value:g}: expected a finite number of 1 or more.")
    if fit not in FITS:
        raise AttnscopeError(f"fit = '{fit}': expected one of {', '.join(FITS)}.")
    law = FITS[fit]
    tokens = law.factor * batch**law.batch * context**law.context
    low, high = TOKENS_PER_UPDATE
    caution = ""
    if not low <= batch * context <= high:
        caution = (
            f"An update of {batch * context:,.0f} tokens lies outside of the {low:,} to {high:,} "
            "that the law was fitted to."
        )
    return Emergence(
        tokens, tokens / SCATTER, tokens * SCATTER, tokens / (batch * context), caution
    )
