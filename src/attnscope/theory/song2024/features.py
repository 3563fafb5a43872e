"""The matrix B of Theorem 1: what W^V multiplies.

With y_i in R^n the outputs of the layer are linear in W^V, MH = B w with w_h = W_h^V W_h^O and
block rows B_i = [S_i1 X_i, ..., S_iH X_i] in R^{n × HD}. B depends on W^Q, W^K and X alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.theory.arrays import Numbers, float64


@dataclass(frozen=True, eq=False)
class LayerState:
    """What the theory reads off a layer of attention at one moment.

    Args:
        weights: S, shape ``(N, head, n, n)``.
        x: tokens, shape ``(N, n, D)``.
        w_o: W^O by heads, shape ``(head, d, outputs)``.
        kernel: name of the kernel, empty if it is not known.
        w_q: W^Q, shape ``(head, D, d)``, with the bias as a last row if there is one; or ``None``.
        w_k: W^K in the same way.
        outputs: MH(X), shape ``(N, n, outputs)``; ``None`` if W^V is not known.
    """

    weights: np.ndarray
    x: np.ndarray
    w_o: np.ndarray
    kernel: str = ""
    w_q: np.ndarray | None = None
    w_k: np.ndarray | None = None
    outputs: np.ndarray | None = None

    @property
    def features(self) -> np.ndarray:
        """B, shape ``(N n, head D)``."""
        return features(self.weights, self.x)

    @property
    def labels(self) -> int:
        """N n, the rows of B."""
        return self.x.shape[0] * self.x.shape[1]

    @property
    def columns(self) -> int:
        """H D, the columns of B."""
        return self.weights.shape[1] * self.x.shape[2]


def features(weights: Numbers, x: Numbers) -> np.ndarray:
    """Return B from weights of shape ``(N, head, n, n)`` and tokens of shape ``(N, n, D)``.

    >>> features([[[[0.5, 0.5], [0.0, 1.0]]]], [[[2.0], [4.0]]]).tolist()
    [[3.0], [4.0]]
    """
    weights, x = float64(weights), float64(x)
    if weights.ndim != 4 or x.ndim != 3 or weights.shape[::2] != x.shape[:2]:
        raise AttnscopeError(
            f"weights of shape {weights.shape} and x of shape {x.shape}: expected (N, heads, n, n) "
            "and (N, n, D)."
        )
    mixed = weights @ x[:, None]
    return np.ascontiguousarray(mixed.transpose(0, 2, 1, 3).reshape(x.shape[0] * x.shape[1], -1))


def layer_state(
    layer: KernelAttention | nn.MultiheadAttention, x: Tensor, mask: Tensor | None = None
) -> LayerState:
    """Read the state off a layer of this package or of PyTorch.

    Args:
        layer: a :class:`KernelAttention`, or an ``nn.MultiheadAttention`` that attends to its own
            input. Dropout is left out.
        x: tokens, shape ``(N, n, D)``, whatever ``batch_first`` says.
        mask: true where there is a token, shape ``(N, n)``.
    """
    own = layer if isinstance(layer, KernelAttention) else _from_pytorch(layer)
    with torch.no_grad():
        x = x.to(own.W_Q.dtype)
        training, eager = own.training, own.eager
        own.eval()
        own.eager = True
        try:
            outputs, weights = own(x, mask), own.weights(x, mask)
        finally:
            own.train(training)
            own.eager = eager
    return LayerState(
        float64(weights),
        float64(x),
        float64(own.W_O),
        own.kernel,
        _with_bias(own.W_Q, own.b_Q),
        _with_bias(own.W_K, own.b_K),
        float64(outputs).reshape(*x.shape[:2], own.outputs),
    )


def state_from_arrays(weights: Numbers, x: Numbers, w_o: Numbers) -> LayerState:
    """Build the state from the weights S, the tokens and W^O.

    Args:
        weights: S, shape ``(N, head, n, n)``.
        x: tokens, shape ``(N, n, D)``.
        w_o: shape ``(head, d, outputs)``, or ``(head, d)`` for one output a token.
    """
    weights, x, w_o = float64(weights), float64(x), float64(w_o)
    w_o = w_o[..., None] if w_o.ndim == 2 else w_o
    features(weights, x)
    if w_o.ndim != 3 or w_o.shape[0] != weights.shape[1]:
        raise AttnscopeError(
            f"w_o of shape {w_o.shape} with {weights.shape[1]} heads: expected (heads, d, outputs) "
            "or (heads, d)."
        )
    return LayerState(weights, x, w_o)


def _with_bias(matrix: Tensor, bias: Tensor | None) -> np.ndarray:
    if bias is None:
        return float64(matrix)
    return np.concatenate([float64(matrix), float64(bias)[:, None]], axis=1)


def _from_pytorch(layer: nn.MultiheadAttention) -> KernelAttention:
    """Copy PyTorch's layer into one of this package."""
    if not isinstance(layer, nn.MultiheadAttention):
        raise AttnscopeError(
            f"{type(layer).__name__}: expected KernelAttention or nn.MultiheadAttention; for any "
            "other attention give its weights to state_from_arrays."
        )
    if layer.in_proj_weight is None or layer.bias_k is not None or layer.add_zero_attn:
        raise AttnscopeError(
            "nn.MultiheadAttention with kdim, vdim, add_bias_kv or add_zero_attn: expected one "
            "that attends to its own input and nothing besides."
        )
    width, heads = layer.embed_dim, layer.num_heads
    bias = layer.in_proj_bias is not None
    own = KernelAttention(width, heads, bias=bias).to(layer.in_proj_weight.dtype)
    with torch.no_grad():
        for i, which in enumerate("QKV"):
            part = layer.in_proj_weight[i * width : (i + 1) * width]
            own.get_parameter(f"W_{which}").copy_(part.view(heads, -1, width).mT)
            if bias:
                part = layer.in_proj_bias[i * width : (i + 1) * width]
                own.get_parameter(f"b_{which}").copy_(part.view(heads, -1))
        own.W_O.copy_(layer.out_proj.weight.T.reshape(heads, -1, width))
        if own.b_O is not None:
            own.b_O.copy_(layer.out_proj.bias)
    return own


def feature_shift(state: LayerState, radius: float) -> float:
    """Bound ‖B - B_0‖_F while W^Q and W^K move by no more than ``radius`` together.

    Softmax: the Jacobian diag(s) - ssᵀ has norm ½ at most, so with κ the largest of all
    ‖W_h^Q‖₂ and ‖W_h^K‖₂

        ‖B - B_0‖_F <= (κ + ρ) ρ √(Σ_i ‖X̃_i‖₂⁴ ‖X_i‖₂²) / √(2d).

    Gaussian: u exp(-u²/(2√d)) is at most d^¼ e^-½, so without any κ

        ‖B - B_0‖_F <= ρ √(2n/e) d^-¼ √(Σ_i ‖X̃_i‖₂² ‖X_i‖₂²).

    X̃ is X with a column of ones if queries and keys have biases. [Derived here.]
    """
    if state.w_q is None or state.w_k is None or state.kernel not in ("softmax", "gaussian"):
        return math.inf
    d, n = state.w_q.shape[2], state.x.shape[1]
    sizes = np.linalg.norm(state.x, ord=2, axis=(1, 2))
    longer = state.x
    if state.w_q.shape[1] > state.x.shape[2]:
        longer = np.concatenate([longer, np.ones_like(longer[..., :1])], axis=2)
    long_sizes = np.linalg.norm(longer, ord=2, axis=(1, 2))
    if state.kernel == "softmax":
        both = np.concatenate([state.w_q, state.w_k])
        kappa = float(np.linalg.norm(both, ord=2, axis=(1, 2)).max())
        data = math.sqrt(float(np.sum(long_sizes**4 * sizes**2)))
        return (kappa + radius) * radius * data / math.sqrt(2 * d)
    data = math.sqrt(float(np.sum(long_sizes**2 * sizes**2)))
    return radius * math.sqrt(2 * n / math.e) * d**-0.25 * data
