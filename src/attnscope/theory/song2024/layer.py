"""From a layer of attention to what the theory reads off it, in double precision."""

from __future__ import annotations

import copy
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import MATRICES, KernelAttention
from attnscope.theory.arrays import float64
from attnscope.theory.song2024.features import LayerState, finite
from attnscope.theory.song2024.rounding import UNIT, row_slack


def layer_state(
    layer: KernelAttention | nn.MultiheadAttention, x: Tensor, mask: Tensor | None = None
) -> LayerState:
    """Read the state off a layer of this package or of PyTorch.

    The weights and tokens are those of the layer's own precision; what is computed from them is
    computed in double precision.

    Args:
        layer: a :class:`KernelAttention`, or an ``nn.MultiheadAttention`` that attends to its own
            input. Dropout is left out. What does not learn (``requires_grad``) is noted; hooks
            that change gradients are not seen.
        x: tokens, shape ``(N, n, D)``, whatever ``batch_first`` says.
        mask: true where there is a token, shape ``(N, n)``.
    """
    own = _checked(layer) if isinstance(layer, KernelAttention) else _from_pytorch(layer)
    precision = own.W_Q.dtype
    with torch.no_grad():
        x = x.to(own.W_Q)
        finite(float64(x), "x")
        for name, parameter in own.named_parameters():
            finite(float64(parameter), name)
        x = x.double()
        if precision != torch.float64:
            own = copy.deepcopy(own).double()
        training, eager = own.training, own.eager
        own.eval()
        own.eager = True
        try:
            outputs, weights = own(x, mask), own.weights(x, mask)
        finally:
            own.train(training)
            own.eager = eager
    tokens, there = float64(x), None if mask is None else mask.cpu().numpy()
    values, output = _with_bias(own.W_V, own.b_V), float64(own.W_O)
    longer = tokens
    if own.b_Q is not None:
        longer = np.concatenate([tokens, np.ones_like(tokens[..., :1])], axis=2)
    w_q, w_k = _with_bias(own.W_Q, own.b_Q), _with_bias(own.W_K, own.b_K)
    s = float64(weights)
    rows = np.isfinite(s).all(axis=(1, 3))
    rows &= np.isfinite(float64(outputs)).reshape(*tokens.shape[:2], -1).all(axis=2)
    if not (rows if there is None else rows[there]).all():
        raise AttnscopeError(
            f"x of size {np.abs(tokens).max():.3g}: the layer's weights or outputs are not finite "
            "even in double precision; expected smaller tokens or weights."
        )
    seen = longer if there is None else np.where(there[..., None], longer, 0.0)
    slack = row_slack(own.kernel, seen, w_q, w_k)
    # |S||X̃||W^V||W^O|: what rounding of the outputs is relative to.
    magnitude = s @ (np.abs(longer)[:, None] @ np.abs(values)) @ np.abs(output)
    terms = 2 * (sum(values.shape) + tokens.shape[1] + 8)
    error = ((slack[..., None] + terms * UNIT) * magnitude).sum(axis=1)
    magnitude = magnitude.sum(axis=1)
    if own.b_O is not None:
        error = error + terms * UNIT * np.abs(float64(own.b_O))
        magnitude = magnitude + np.abs(float64(own.b_O))
    return LayerState(
        s,
        tokens,
        output,
        own.kernel,
        w_q,
        w_k,
        float64(outputs).reshape(*tokens.shape[:2], own.outputs),
        mask=there,
        trained=frozenset(_trained(layer)),
        slack=slack,
        output_error=error,
        output_size=magnitude,
        precision=float(torch.finfo(precision).eps),
        dropout=float(layer.dropout),
    )


def _trained(layer: KernelAttention | nn.MultiheadAttention) -> set[str]:
    """Return which of W_Q, W_K, W_V and W_O may move, with or by their biases."""
    if isinstance(layer, nn.MultiheadAttention):
        inward = layer.in_proj_weight.requires_grad
        by_bias = layer.in_proj_bias is not None and layer.in_proj_bias.requires_grad
        moved = {"W_Q", "W_K", "W_V"} if inward else {"W_Q", "W_K"} if by_bias else set()
        return moved | ({"W_O"} if layer.out_proj.weight.requires_grad else set())
    moved = {name for name in MATRICES if layer.get_parameter(name).requires_grad}
    for name in MATRICES[:2]:
        bias = getattr(layer, f"b_{name[-1]}")
        if bias is not None and bias.requires_grad:
            moved.add(name)
    return moved


def _checked(layer: KernelAttention) -> KernelAttention:
    """Refuse a layer whose matrices are not parameters of their own, or are used otherwise."""
    if type(layer).forward is not KernelAttention.forward:
        raise AttnscopeError(
            f"{type(layer).__name__} has a forward pass of its own: expected that of "
            "KernelAttention; or give its weights to state_from_arrays."
        )
    _own_numbers(layer, {name: getattr(layer, name) for name in MATRICES})
    return layer


def _own_numbers(layer: nn.Module, matrices: dict[str, Tensor]) -> None:
    for name, matrix in matrices.items():
        if parametrize.is_parametrized(layer) or not isinstance(matrix, nn.Parameter):
            raise AttnscopeError(
                f"{name} is computed from other parameters: expected a parameter itself, since the "
                "certificate is about gradient flow of the matrices."
            )
    spans = {name: _span(matrix) for name, matrix in matrices.items()}
    for (one, (start, end)), (other, (begin, stop)) in combinations(spans.items(), 2):
        if start < stop and begin < end:
            raise AttnscopeError(
                f"{one} and {other} share their numbers: expected matrices of their own; the "
                "certificate does not hold for tied ones."
            )


def _span(matrix: Tensor) -> tuple[int, int]:
    """Return where in memory the numbers of a matrix begin and end."""
    steps = zip(matrix.shape, matrix.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return matrix.data_ptr(), matrix.data_ptr() + (last + 1) * matrix.element_size()


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
    _own_numbers(
        layer, {"in_proj_weight": layer.in_proj_weight, "out_proj.weight": layer.out_proj.weight}
    )
    width, heads = layer.embed_dim, layer.num_heads
    bias = layer.in_proj_bias is not None
    own = KernelAttention(width, heads, bias=bias).to(layer.in_proj_weight)
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
