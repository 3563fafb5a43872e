r"""Where more sequences in an update stop to save updates: the critical batch size.

If the noise of the gradient decides how long something takes, the updates until then are

.. math::

    U(B) = U_\infty \left(1 + \frac{B_c}{B}\right), \qquad
    \frac{d \ln N}{d \ln B} = \frac{B}{B + B_c}

for the tokens :math:`N = B C U` (McCandlish et al. 2018, arXiv 1812.06162). So the exponent of a
power law in the batch is no constant: 0 for small batches, one half at :math:`B_c`, and 1 where
batches are so large that the number of updates is that of the full batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from attnscope.errors import AttnscopeError
from attnscope.theory.arrays import Numbers, float64


@dataclass(frozen=True)
class CriticalBatch:
    """The law of updates over batch size.

    Args:
        updates: U_∞, those of the full batch.
        size: B_c.
    """

    updates: float
    size: float

    def at(self, batches: Numbers) -> np.ndarray:
        """Return the updates at batch sizes.

        >>> print(CriticalBatch(100.0, 64.0).at([32, 64, 1e9]).round(3))
        [300. 200. 100.]
        """
        return np.asarray(self.updates * (1 + self.size / float64(batches)))

    def exponent(self, batches: Numbers) -> np.ndarray:
        """Return the exponent of tokens in the batch size, B/(B + B_c)."""
        own = float64(batches)
        return np.asarray(own / (own + self.size))


def critical_batch(batches: Numbers, updates: Numbers) -> CriticalBatch:
    """Fit the law to updates at two or more batch sizes, by relative least squares.

    Neither of its two parts is negative: where updates do not fall at all the critical size is 0.

    Raises:
        AttnscopeError: there are not two batch sizes, or a number is not positive and finite.

    >>> found = critical_batch([32, 64, 128], [300.0, 200.0, 150.0])
    >>> print(f"{found.updates:.6f} {found.size:.6f}")
    100.000000 64.000000
    """
    sizes, known = float64(batches), float64(updates)
    if len(np.unique(sizes)) < 2 or sizes.shape != known.shape:
        raise AttnscopeError(
            f"batches = {sizes.tolist()} with {known.size} numbers of updates: expected two batch "
            "sizes or more, and updates for each."
        )
    if not ((sizes > 0) & (known > 0) & np.isfinite(sizes) & np.isfinite(known)).all():
        raise AttnscopeError(
            f"batches = {sizes.tolist()}, updates = {known.tolist()}: expected numbers above 0."
        )
    flat, noisy = nnls(np.stack([1 / known, 1 / (sizes * known)], axis=1), np.ones(len(known)))[0]
    if flat == 0:
        raise AttnscopeError(
            f"updates = {known.tolist()} fall as fast as 1/batch: expected a batch large enough "
            "that they do not, or there is no critical size to be found."
        )
    return CriticalBatch(float(flat), float(noisy / flat))
