r"""Which parameters of a model are :math:`W^Q, W^K, W^V` and :math:`W^O` of its attention.

They are recognised by what modules are, for ``nn.MultiheadAttention``, and else by how they are
called: ``q_proj``, ``query``, ``to_q``; ``out_proj``, ``c_proj``; or all of the first three in one,
``qkv`` or ``c_attn``, queries first, then keys, then values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnscope.watching.attach_method import count_heads
from attnscope.watching.moment import AttentionPoint
from attnscope.watching.undisturbed import bare

MATRICES = ("Q", "K", "V", "O")
SINGLE = {
    "Q": r"(q|query|queries)(_?(proj|lin|linear|projection|layer))?|(wq|w_q|to_q|linear_q|fc_q"
    r"|q_attn)",
    "K": r"(k|key|keys)(_?(proj|lin|linear|projection|layer))?|(wk|w_k|to_k|linear_k|fc_k)",
    "V": r"(v|value|values)(_?(proj|lin|linear|projection|layer))?|(wv|w_v|to_v|linear_v|fc_v)",
    "O": r"(o|out|output)(_?(proj|lin|linear|projection))?|(wo|w_o|to_out|linear_out|fc_out|fc_o"
    r"|c_proj|proj|dense)",
}
FUSED = r"(qkv|w_?qkv|to_qkv|in_proj|c_attn)(_?(proj|lin|linear))?"
HOLDERS = 3
"""A module that attends may hold no matrices, and so may the one that holds it."""
BY_HEAD = ("GPTNeoX", "Bloom")
"""Hugging Face families whose ``query_key_value`` has the three of one head next to each other."""


@dataclass(frozen=True, eq=False)
class Part:
    """A matrix inside a parameter.

    Args:
        name: of the parameter in the model.
        cut: takes the matrix out of it.
    """

    name: str
    cut: Callable[[Tensor], Tensor]

    def of(self, tensors: Mapping[str, Tensor]) -> Tensor | None:
        """Return the matrix from parameters or gradients by name."""
        whole = tensors.get(self.name)
        return None if whole is None else self.cut(whole)


@dataclass(frozen=True, eq=False)
class Projections:
    """The matrices of one attention layer; those that were not recognised are missing."""

    name: str
    parts: Mapping[str, Part]


def find_projections(model: nn.Module, points: Sequence[AttentionPoint]) -> list[Projections]:
    """Return the matrices of every attention point, in the same order.

    When points are no modules, as with a function that returns weights, all modules that hold
    queries and keys are taken, in the order in which the model holds them.
    """
    inside = bare(model)
    names = {id(p): name for name, p in model.named_parameters()}
    modules = dict(inside.named_modules())
    paths = {id(part): path for path, part in modules.items()}
    held = [(point.name, getattr(point, "module", None)) for point in points]
    if held and all(isinstance(module, nn.Module) and module is not inside for _, module in held):
        found = [
            (name, _holder(modules, paths, module))
            for name, module in held
            if isinstance(module, nn.Module)
        ]
    else:
        found = [(name, part) for name, part in modules.items() if _holds_queries(part)]
    return [
        Projections(
            name, dict(_recognise(module, _around(modules, paths.get(id(module), "")), names))
        )
        for name, module in found
    ]


def missing(layers: Sequence[Projections]) -> str:
    """Say which matrices were not recognised; empty if all were."""
    lost = [
        f"{layer.name or 'the model'} ({', '.join(k for k in MATRICES if k not in layer.parts)})"
        for layer in layers
        if any(kind not in layer.parts for kind in MATRICES)
    ]
    if not lost:
        return ""
    shown = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    return f"matrices that were not recognised, NaN in readings of weights: {shown}"


def _holds_queries(module: nn.Module) -> bool:
    if isinstance(module, nn.MultiheadAttention):
        return True
    named = [name.lower() for name, _ in module.named_children()]
    has = {kind: any(re.fullmatch(SINGLE[kind], name) for name in named) for kind in "QK"}
    return all(has.values()) or any(re.fullmatch(FUSED, name) for name in named)


def _holder(
    modules: Mapping[str, nn.Module], paths: Mapping[int, str], module: nn.Module
) -> nn.Module:
    """Return the module that holds the queries of an attention: itself, or one that holds it."""
    path = paths.get(id(module), "")
    for _ in range(HOLDERS):
        if _holds_queries(modules[path]):
            return modules[path]
        if not path:
            break
        path = path.rpartition(".")[0]
    return module


def _around(modules: Mapping[str, nn.Module], path: str) -> nn.Module | None:
    """Return the module ``output`` beside an attention, which holds W^O in BERT and its kin."""
    return modules.get(f"{path.rpartition('.')[0]}.output") if "." in path else None


def _recognise(
    module: nn.Module, beside: nn.Module | None, names: Mapping[int, str]
) -> Iterator[tuple[str, Part]]:
    if isinstance(module, nn.MultiheadAttention):
        yield from _multihead(module, names)
        return
    for path, part in module.named_modules():
        last = path.rpartition(".")[2].lower()
        weight = _weight(part)
        if weight is None or id(weight) not in names:
            continue
        name = names[id(weight)]
        for kind, pattern in SINGLE.items():
            if re.fullmatch(pattern, last):
                yield kind, Part(name, _whole)
        if re.fullmatch(FUSED, last) and not getattr(module, "is_cross_attention", False):
            yield from _thirds(module, part, weight, name)
        elif last == "query_key_value" and type(module).__name__.startswith(BY_HEAD):
            heads = count_heads(module)
            if heads and len(weight) % (3 * heads) == 0:
                for place, kind in enumerate("QKV"):
                    yield kind, Part(name, _by_head(heads, place))
    dense = _weight(getattr(beside, "dense", None))
    if dense is not None and id(dense) in names:
        yield "O", Part(names[id(dense)], _whole)


def _multihead(
    module: nn.MultiheadAttention, names: Mapping[int, str]
) -> Iterator[tuple[str, Part]]:
    width = module.embed_dim
    if module.in_proj_weight is not None:
        name = names[id(module.in_proj_weight)]
        for place, kind in enumerate("QKV"):
            yield kind, Part(name, _slice(0, place * width, width))
    else:
        for kind in "QKV":
            yield kind, Part(names[id(getattr(module, f"{kind.lower()}_proj_weight"))], _whole)
    yield "O", Part(names[id(module.out_proj.weight)], _whole)


def _thirds(
    module: nn.Module, part: nn.Module, weight: Tensor, name: str
) -> Iterator[tuple[str, Part]]:
    """Yield queries, keys and values; with grouped heads there are fewer keys than queries."""
    axis = 1 if type(part).__name__ == "Conv1D" else 0
    size, width = weight.shape[axis], getattr(module, "head_dim", None)
    heads = count_heads(module)
    queries = heads * width if heads and isinstance(width, int) else size // 3
    rest = size - queries
    if rest <= 0 or rest % 2 or (not heads and size % 3):
        return
    others = rest // 2
    starts = {"Q": (0, queries), "K": (queries, others), "V": (queries + others, others)}
    for kind, (start, length) in starts.items():
        yield kind, Part(name, _slice(axis, start, length))


def _weight(module: nn.Module | None) -> Tensor | None:
    """Return the matrix of a module, or of the layer inside an adapter."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, Tensor):
        weight = getattr(getattr(module, "base_layer", None), "weight", None)
    return weight if isinstance(weight, Tensor) and weight.ndim == 2 else None


def _whole(weight: Tensor) -> Tensor:
    return weight


def _slice(axis: int, start: int, length: int) -> Callable[[Tensor], Tensor]:
    return lambda weight: weight.narrow(axis, start, length)


def _by_head(heads: int, place: int) -> Callable[[Tensor], Tensor]:
    def cut(weight: Tensor) -> Tensor:
        return torch.flatten(weight.unflatten(0, (heads, 3, -1))[:, place], 0, 1)

    return cut
