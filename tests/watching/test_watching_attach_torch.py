from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnscope.watching.attach_torch import find_multihead
from attnscope.watching.points import find

# Packed batches are torch's own doing, and torch says so once.
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

ROWS, LENGTH, WIDTH, HEADS = 3, 5, 16, 2
PADDING = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 1, 1, 1]]).bool()
CAUSAL = nn.Transformer.generate_square_subsequent_mask(LENGTH)


def attention(**options: Any) -> nn.MultiheadAttention:
    torch.manual_seed(0)
    module = nn.MultiheadAttention(WIDTH, HEADS, **{"batch_first": True, **options})
    nn.init.normal_(module.in_proj_bias)
    return module


def encoder(layers: int = 2, **options: Any) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, 32, **{"batch_first": True, "dropout": 0.1, **options}
    )
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=not options)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def words(*shape: int) -> Tensor:
    return torch.randn(
        *(shape or (ROWS, LENGTH, WIDTH)), generator=torch.Generator().manual_seed(1)
    )


def watched(model: nn.Module, run: Callable[[], Any]) -> tuple[Any, list[list[Tensor]]]:
    """Run with every point attached; return the output and what each of them kept."""
    points = find(model)
    kept: list[list[Tensor]] = [[] for _ in points]
    handles = [point.attach(kept[i].append) for i, point in enumerate(points)]
    try:
        return run(), kept
    finally:
        for handle in handles:
            handle.remove()


CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "padding": ({}, {"key_padding_mask": PADDING}),
    "added padding": ({}, {"key_padding_mask": PADDING.float() * -2}),
    "causal": ({}, {"attn_mask": CAUSAL, "is_causal": True}),
    "boolean mask": ({}, {"attn_mask": CAUSAL < 0}),
    "mask by head": ({}, {"attn_mask": words(ROWS * HEADS, LENGTH, LENGTH)}),
    "both masks": ({}, {"attn_mask": CAUSAL < 0, "key_padding_mask": PADDING}),
    "length first": ({"batch_first": False}, {"key_padding_mask": torch.zeros(5, 3).bool()}),
    "own keys": ({"add_bias_kv": True, "add_zero_attn": True}, {"key_padding_mask": PADDING}),
    "dropout": ({"dropout": 0.3}, {}),
}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("case", CALLS)
def test_weights_are_those_the_module_returns(case: str, fused: bool) -> None:
    options, masks = CALLS[case]
    module, x = attention(**options).eval(), words()
    _, own = module(x, x, x, need_weights=True, average_attn_weights=False, **masks)
    if options.get("dropout"):
        module.train()
    _, kept = watched(module, lambda: module(x, x, x, need_weights=not fused, **masks))
    assert len(kept) == 1
    assert len(kept[0]) == 1
    assert kept[0][0].shape == own.shape
    assert not kept[0][0].requires_grad
    torch.testing.assert_close(kept[0][0], own, atol=1e-6, rtol=0)


def test_cross_attention_with_keys_of_another_width() -> None:
    module = attention(kdim=6, vdim=4)
    x, memory, value = words(), words(ROWS, 7, 6), words(ROWS, 7, 4)
    run = lambda **more: module(x, memory, value, **more)  # noqa: E731
    _, kept = watched(module, lambda: run(need_weights=False))
    own = run(need_weights=True, average_attn_weights=False)[1]
    torch.testing.assert_close(kept[0][0], own, atol=1e-6, rtol=0)


def test_without_a_batch_there_is_one_row() -> None:
    module, x = attention(), words(LENGTH, WIDTH)
    own = module(x, x, x, average_attn_weights=False)[1]
    for more in ({}, {"average_attn_weights": False}):
        _, kept = watched(module, lambda more=more: module(x, x, x, **more))
        torch.testing.assert_close(kept[0][0], own[None], atol=1e-6, rtol=0)


def test_a_query_without_keys_has_a_row_of_zeros() -> None:
    module, x = attention(), words()
    padding = PADDING.clone()
    padding[2] = True
    _, kept = watched(module, lambda: module(x, x, x, key_padding_mask=padding, need_weights=False))
    assert torch.equal(kept[0][0][2], torch.zeros(HEADS, LENGTH, LENGTH))
    torch.testing.assert_close(kept[0][0][:2].sum(-1), torch.ones(2, HEADS, LENGTH))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("masks", [{}, {"src_key_padding_mask": PADDING}, {"mask": CAUSAL}])
def test_output_and_gradients_are_the_same_to_the_bit(
    training: bool, norm_first: bool, masks: dict[str, Tensor]
) -> None:
    model = encoder(**({"norm_first": True} if norm_first else {})).train(training)

    def run() -> tuple[Tensor, list[Tensor], Tensor]:
        torch.manual_seed(5)
        x = words().requires_grad_()
        output = model(x, **masks)
        gradients = torch.autograd.grad(output.square().sum(), [x, *model.parameters()])
        return output, list(gradients), torch.get_rng_state()

    output, gradients, state = run()
    (seen, seen_gradients, seen_state), kept = watched(model, run)
    assert torch.equal(seen, output)
    assert all(map(torch.equal, seen_gradients, gradients))
    assert torch.equal(seen_state, state)
    assert [len(each) for each in kept] == [1, 1]


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("masks", [{}, {"src_key_padding_mask": PADDING}, {"mask": CAUSAL < 0}])
def test_the_inference_path_is_taken_and_seen(
    norm_first: bool, masks: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = encoder(**({"norm_first": True} if norm_first else {})).eval()
    fused: list[int] = []
    original = torch._transformer_encoder_layer_fwd

    def count(*args: Any) -> Tensor:
        fused.append(1)
        return original(*args)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", count)
    with torch.no_grad():
        output = model(words(), **masks)
        seen, kept = watched(model, lambda: model(words(), **masks))
    # Two layers, with and without somebody looking on.
    assert len(fused) == 4
    assert torch.equal(seen, output)
    # The other path, with gradients, is the oracle.
    _, slow = watched(model, lambda: model(words(), **masks))
    assert len(fused) == 4
    real = ~masks.get("src_key_padding_mask", torch.zeros(ROWS, LENGTH).bool())
    rows = real[:, None, :, None].expand(-1, HEADS, -1, LENGTH)
    for fast, oracle in zip(kept, slow, strict=True):
        assert len(fast) == len(oracle) == 1
        assert fast[0].shape == (ROWS, HEADS, LENGTH, LENGTH)
        torch.testing.assert_close(fast[0][rows], oracle[0][rows], atol=1e-6, rtol=0)


def test_packed_sequences_are_as_long_as_the_batch() -> None:
    model, padding = encoder().eval(), PADDING.clone()
    padding[:, -2:] = True
    with torch.no_grad():
        _, kept = watched(model, lambda: model(words(), src_key_padding_mask=padding))
    for (weights,) in kept:
        assert weights.shape == (ROWS, HEADS, LENGTH, LENGTH)
        expected = (~padding).float()[:, None].expand(-1, HEADS, -1)
        torch.testing.assert_close(weights.sum(-1), expected)


def test_an_encoder_layer_alone_is_seen_on_its_inference_path() -> None:
    model = encoder(1).layers[0].eval()
    with torch.no_grad():
        _, kept = watched(model, lambda: model(words()))
        x = words()
        own = model.self_attn(x, x, x, average_attn_weights=False)[1]
    torch.testing.assert_close(kept[0][0], own, atol=1e-6, rtol=0)


def test_a_whole_transformer_has_encoder_decoder_and_cross_attention() -> None:
    torch.manual_seed(0)
    model = nn.Transformer(WIDTH, HEADS, 1, 1, 32, batch_first=True)
    source, target = words(ROWS, 7, WIDTH), words()
    _, kept = watched(model, lambda: model(source, target, tgt_mask=CAUSAL, tgt_is_causal=True))
    assert [point.name for point in find_multihead(model)] == [
        "encoder.layers.0.self_attn",
        "decoder.layers.0.self_attn",
        "decoder.layers.0.multihead_attn",
    ]
    shapes = [(7, 7), (LENGTH, LENGTH), (LENGTH, 7)]
    assert [weights.shape[2:] for (weights,) in kept] == shapes
    assert torch.equal(kept[1][0].triu(1), torch.zeros_like(kept[1][0]))


def test_removing_leaves_nothing_behind() -> None:
    methods = [
        (kind, kind.forward)
        for kind in (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
    ]
    model = encoder()
    before = [set(vars(module)) for module in model.modules()]
    first, second = (find(model)[0].attach(lambda weights: None) for _ in range(2))
    assert nn.MultiheadAttention.forward is not methods[0][1]
    assert [set(vars(module)) for module in model.modules()] == before
    assert not any(module._forward_hooks for module in model.modules())
    first.remove()
    first.remove()
    assert nn.MultiheadAttention.forward is not methods[0][1]
    second.remove()
    assert all(kind.forward is method for kind, method in methods)


def test_copies_and_files_of_a_watched_model_are_not_watched() -> None:
    model = encoder()
    kept: list[Tensor] = []
    handle = find(model)[0].attach(kept.append)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other(words())
    assert not kept
    model(words())
    assert len(kept) == 1
    handle.remove()


def test_an_error_of_the_recorder_stays_with_the_recorder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = encoder().eval()
    output = model(words())
    kept: list[Tensor] = []
    handle = find(model)[0].attach(kept.append)
    monkeypatch.setattr("attnscope.watching.attach_torch._project", lambda *_: 1 / 0)
    with pytest.warns(UserWarning, match=r"'layers.0.self_attn' cannot be read .ZeroDivision"):
        assert torch.equal(model(words()), output)
    assert torch.equal(model(words()), output)
    handle.remove()
    assert [tuple(weights.shape) for weights in kept] == [(0,)]
