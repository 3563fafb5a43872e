"""W^Q, W^K, W^V and W^O are found by what modules are and how they are called."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from attnscope.watching.matrices import MATRICES, Projections, find_projections, missing
from attnscope.watching.points import find
from watched_toys import Own, Reader


def _matrices(model: nn.Module, layer: Projections) -> list[Tensor]:
    tensors = dict(model.named_parameters())
    found = [layer.parts[kind].of(tensors) for kind in MATRICES]
    assert all(part is not None for part in found)
    return [part for part in found if part is not None]


def _same(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_multihead_attention_in_one_piece_and_in_three() -> None:
    whole = nn.ModuleList(
        [nn.MultiheadAttention(4, 2), nn.MultiheadAttention(4, 2, kdim=3, vdim=5)]
    )
    one, three = find_projections(whole, find(whole))
    first, second = whole[0], whole[1]
    weight = first.in_proj_weight
    assert _same(_matrices(whole, one), [*weight.chunk(3), first.out_proj.weight])
    parts = [second.q_proj_weight, second.k_proj_weight, second.v_proj_weight]
    assert _same(_matrices(whole, three), [*parts, second.out_proj.weight])
    assert missing([one, three]) == ""


def test_own_attention_by_name() -> None:
    model = Reader()
    (layer,) = find_projections(model, [Own(model)])
    qkv = model.attention.qkv.weight
    assert _same(_matrices(model, layer), [*qkv.chunk(3), model.attention.out.weight])
    # The same is found when attention is a function of the model.
    (again,) = find_projections(model, find(model, lambda m: m.attention.weights))  # type: ignore[union-attr]
    assert again.name == "attention"
    assert _same(_matrices(model, again), _matrices(model, layer))


def test_grouped_heads_have_fewer_keys() -> None:
    class Grouped(nn.Module):
        num_heads, head_dim = 4, 2

        def __init__(self) -> None:
            super().__init__()
            self.qkv_proj, self.o_proj = nn.Linear(8, 8 + 2 + 2), nn.Linear(8, 8)

    model = nn.ModuleDict({"attn": Grouped()})
    (layer,) = find_projections(model, [])
    sizes = [tuple(part.shape) for part in _matrices(model, layer)]
    assert sizes == [(8, 8), (2, 8), (2, 8), (8, 8)]


def test_what_is_not_recognised_is_said() -> None:
    model = Reader()
    model.attention.out, model.attention.qkv = nn.Linear(8, 8), nn.Linear(8, 8)
    model.attention.mix = model.attention.qkv
    del model.attention.qkv
    layers = find_projections(model, [Own(model)])
    assert missing(layers) == (
        "matrices that were not recognised, NaN in readings of weights: attention (Q, K, V)"
    )


def _huggingface(kind: str) -> nn.Module:
    transformers = pytest.importorskip("transformers")
    small = {"vocab_size": 11}
    if kind == "gpt2":
        config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, n_positions=8, **small)
    elif kind == "gpt_neox":
        config = transformers.GPTNeoXConfig(
            num_hidden_layers=1, num_attention_heads=2, hidden_size=8, intermediate_size=8, **small
        )
    else:
        config = transformers.BertConfig(
            num_hidden_layers=1, num_attention_heads=2, hidden_size=8, intermediate_size=8, **small
        )
    model: nn.Module = transformers.AutoModel.from_config(config)
    return model


@pytest.mark.parametrize("kind", ["gpt2", "gpt_neox", "bert"])
def test_hugging_face(kind: str) -> None:
    model = _huggingface(kind)
    (layer,) = find_projections(model, find(model))
    q, k, v, o = _matrices(model, layer)
    if kind == "gpt2":
        attention = model.h[0].attn
        assert _same([q, k, v], list(attention.c_attn.weight.chunk(3, dim=1)))
        assert o is attention.c_proj.weight
    elif kind == "gpt_neox":
        attention = model.layers[0].attention
        by_head = attention.query_key_value.weight.view(2, 3, 4, 8)
        assert _same([q, k, v], [by_head[:, i].reshape(8, 8) for i in range(3)])
        assert o is attention.dense.weight
    else:
        attention = model.encoder.layer[0].attention
        assert q is attention.self.query.weight
        assert k is attention.self.key.weight
        assert v is attention.self.value.weight
        assert o is attention.output.dense.weight
