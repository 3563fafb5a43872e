r"""How attention becomes hard: what is left on the other tokens, with its constants.

Once attention is nearly hard the output saturates, so :math:`|\ell'|` is a constant, unlike in
logistic regression. Then :math:`\theta(t) = \theta_{mm} \log t + const`, and on the support

.. math::

    s_{it} \, t \to C_{it} = \frac{n \lambda_{it}}
        {|\ell'(\gamma_{i \alpha_i})| \, (\gamma_{i \alpha_i} - \gamma_{it})} ,

with the dual λ of the SVM. Other tokens fall faster, with the power of their margin. This is not in
the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from attnscope.theory.tarzanagh2023.svm import AttentionSvm

Loss = Literal["logistic", "linear"]
"""log(1 + exp(-x)), or -x."""
SLOPES: dict[Loss, Callable[[np.ndarray], np.ndarray]] = {
    "logistic": lambda x: 1 / (1 + np.exp(x)),
    "linear": np.ones_like,
}
"""|ℓ'| of the losses."""


def slope_of(loss: Loss, output: np.ndarray) -> np.ndarray:
    """Return |ℓ'| at the outputs."""
    return SLOPES[loss](np.asarray(output, dtype=float))


def tail_constants(
    svm: AttentionSvm, scores: np.ndarray, chosen: np.ndarray, slope: np.ndarray
) -> np.ndarray:
    """Return C, shape ``(input, token)``; NaN off the support and where theory has no constant.

    There is none for a token on the support whose score is as high as that of the chosen one: the
    choice does not last.

    Args:
        svm: of the choice.
        scores: γ, shape ``(input, token)``.
        chosen: α.
        slope: |ℓ'| at the score of the chosen token of each input.
    """
    own = np.take_along_axis(scores, np.asarray(chosen)[:, None], axis=1)
    gaps = np.where(svm.support & (svm.dual > 0) & (own > scores), own - scores, np.nan)
    return np.asarray(len(scores) * svm.dual / (np.asarray(slope)[:, None] * gaps))
