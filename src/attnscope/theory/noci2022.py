r"""Gradients of queries and keys when the tokens of a row are alike (Noci et al. 2022).

Attention is :math:`S = A X W_V` with :math:`A = \operatorname{softmax}(X W_Q W_K^\top X^\top /
\sqrt d)`, X of T tokens and width d, weights independent with variance :math:`\sigma^2 / d`. With
:math:`P = I - 11^\top / T`, at uniform attention

.. math::

    E \|\partial S / \partial W_Q\|_F^2 = \frac{\sigma_K^2 \sigma_V^2}{d}
        \frac{\|X\|_F^2 \, \|X^\top P X\|_F^2}{T^2}, \qquad
    \|\partial S / \partial W_V\|_F^2 = d T \|\bar x\|^2 .

Tokens that are all the same have :math:`P X = 0`: queries and keys get no gradient, values do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def query_gradient(tokens: np.ndarray, key_scale: float = 1.0, value_scale: float = 1.0) -> float:
    """Return the expected squared norm of dS/dW_Q at uniform attention.

    Args:
        tokens: X, shape ``(T, d)``.
        key_scale: sigma of W_K.
        value_scale: sigma of W_V.
    """
    count, width = tokens.shape
    centred = tokens - tokens.mean(axis=0)
    spread = (tokens.T @ centred) ** 2
    scales = (key_scale * value_scale) ** 2
    return float(scales / width * (tokens**2).sum() * spread.sum() / count**2)


def value_gradient(tokens: np.ndarray) -> float:
    """Return the squared norm of dS/dW_V at uniform attention."""
    count, width = tokens.shape
    return float(width * count * (tokens.mean(axis=0) ** 2).sum())


def gradient_ratio_bound(
    residual: ArrayLike, key_scale: float = 1.0, value_scale: float = 1.0
) -> np.ndarray:
    r"""Return the largest :math:`\|dS/dW_Q\| / \|dS/dW_V\|` that the likeness of tokens allows.

    For normalised tokens (:math:`\|x\|^2 = d`) with the rank residual :math:`\rho = \|P X\|_F /
    \|X\|_F`, both formulas and :math:`\|X^\top P X\|_F \le \|P X\|_F^2` give
    :math:`\sigma_K \sigma_V \rho^2 / \sqrt{1 - \rho^2}`.

    >>> print(gradient_ratio_bound(0.1).round(6))
    0.01005
    """
    rho = np.asarray(residual, dtype=float)
    return np.asarray(key_scale * value_scale * rho**2 / np.sqrt(np.maximum(1 - rho**2, 1e-300)))


def gradient_ratio_at_depth(
    residual: ArrayLike,
    layers: ArrayLike,
    branch: float = 1.0,
    key_scale: float = 1.0,
    value_scale: float = 1.0,
) -> np.ndarray:
    r"""Return the largest :math:`\|dS/dW_Q\| / \|dS/dW_V\|` behind L layers, at the start.

    Layers with skip connections make tokens parallel, :func:`residual_after`; what that leaves to
    queries and keys is :func:`gradient_ratio_bound`. It falls as :math:`2^{-L}` with branches as
    they are, and not at all beyond a constant with branches scaled by :math:`1/\sqrt L`.

    >>> print(gradient_ratio_at_depth(0.5, [0, 10, 40]).round(6))
    [0.288675 0.000325 0.      ]
    >>> print(gradient_ratio_at_depth(0.5, 40, branch=40**-0.5).round(3))
    0.117
    """
    return gradient_ratio_bound(
        residual_after(residual, layers, branch, value_scale), key_scale, value_scale
    )


def mean_growth(layers: ArrayLike, branch: float = 1.0, value_scale: float = 1.0) -> np.ndarray:
    r"""Return how much the squared mean of tokens grows over L layers of uniform attention.

    It is :math:`(1 + a^2 \sigma_V^2)^L`. With the skip connection :math:`X \leftarrow X + a A X
    W_V` the deviations :math:`P X` stay and the mean grows, so tokens become parallel: by
    :math:`2^L` for a = 1, by :math:`e^{\sigma_V^2}` at most for :math:`a = 1/\sqrt L`, the remedy
    of the paper.
    """
    depth = np.asarray(layers, dtype=float)
    return np.asarray((1 + (branch * value_scale) ** 2) ** depth)


def residual_after(
    residual: ArrayLike, layers: ArrayLike, branch: float = 1.0, value_scale: float = 1.0
) -> np.ndarray:
    r"""Return the rank residual that is left behind L such layers.

    :math:`\rho_L^2 = \rho_0^2 / (\rho_0^2 + (1 - \rho_0^2) (1 + a^2 \sigma_V^2)^L)`.
    """
    squared = np.asarray(residual, dtype=float) ** 2
    grown = (1 - squared) * mean_growth(layers, branch, value_scale)
    return np.sqrt(squared / (squared + grown))
