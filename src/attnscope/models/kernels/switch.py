"""Exchanging the kernel of a trained model without losing what it has learned.

Softmax attention knows q·k alone: W^Q times c and W^K over c leave it as it is. The normalised
Gaussian kernel is softmax with the logits (q·k - ‖k‖²/2)/√d (:class:`NormalisedGaussian`), and the
same scaling divides its second term by c². So a softmax layer becomes a normalised Gaussian one
whose logits differ by -‖k_j‖²/(2 c² √d), as little as one likes. What is equal for all keys drops
out of a row; with

    Δ = (max_j ‖k_j‖² - min_j ‖k_j‖²) / (2 c² √d)

every weight changes by a factor between exp(-Δ) and exp(Δ), and a row by exp(Δ) - 1 at most in sum.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_classifier import KernelClassifier

AFTER = "normalised-gaussian"


def switch_to_gaussian(model: KernelAttention | KernelClassifier, scale: float = 4.0) -> None:
    """Make normalised Gaussian attention of softmax attention, in place.

    Queries are multiplied by ``scale`` and keys divided by it before the kernel is exchanged.
    :func:`switch_bound` says how much that changes.

    Args:
        model: a layer, or a classifier with several.
        scale: c; the change of the logits shrinks with its square.

    Raises:
        AttnscopeError: the model has another kernel than softmax, none at all, or the scale is no
            number above 0.
    """
    layers = _layers(model)
    if not 0 < scale < math.inf:
        raise AttnscopeError(f"scale = {scale}: expected a finite number above 0.")
    for layer in layers:
        if layer.kernel != "softmax":
            raise AttnscopeError(
                f"a layer with {layer.kernel} attention: expected softmax, the one kernel that "
                "does not notice how queries and keys are scaled."
            )
    with torch.no_grad():
        for layer in layers:
            for name, factor in (("Q", scale), ("K", 1 / scale)):
                for part in (getattr(layer, f"W_{name}"), getattr(layer, f"b_{name}")):
                    if part is not None:
                        part.mul_(factor)
            layer.kernel = AFTER


def switch_bound(layer: KernelAttention, x: Tensor, scale: float = 4.0) -> float:
    """Return exp(Δ) - 1, what a row of weights changes by at most when the kernel is exchanged.

    Args:
        layer: with softmax attention, before the exchange.
        x: what enters it, shape ``(batch, n, width)``.
        scale: c.

    Example:
        >>> layer = KernelAttention(4, 1, generator=torch.Generator().manual_seed(0))
        >>> x = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(1))
        >>> round(switch_bound(layer, x, 4.0), 4), round(switch_bound(layer, x, 40.0), 6)
        (0.0171, 0.00017)
    """
    (only,) = _layers(layer)
    with torch.no_grad():
        keys = only.queries_keys(x)[1].double()
        squares = (keys * keys).sum(dim=-1)
        spread = float((squares.amax(dim=-1) - squares.amin(dim=-1)).max())
    return math.expm1(spread / (2 * scale**2 * math.sqrt(only.head_width)))


def _layers(model: object) -> list[KernelAttention]:
    if isinstance(model, KernelAttention):
        return [model]
    if isinstance(model, KernelClassifier):
        return model.attention
    raise AttnscopeError(
        f"a model of {type(model).__name__} has no kernel to exchange: expected a KernelAttention "
        "or a KernelClassifier."
    )
