from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnscope.watching.attach_huggingface import eager_mask
from attnscope.watching.introduction import describe
from attnscope.watching.points import find

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install 'attnscope[hf]'"
)

ROWS, LENGTH = 3, 6
IDS = torch.arange(ROWS * LENGTH).reshape(ROWS, LENGTH) % 17 + 2
REAL = torch.ones(ROWS, LENGTH, dtype=torch.long)
REAL[1, -2:] = 0
SMALL = {"vocab_size": 20, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}


def bert(name: str) -> Any:
    config = transformers.BertConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        attn_implementation=name,
        **SMALL,
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def gpt2(name: str) -> Any:
    config = transformers.GPT2Config(
        n_embd=16, n_layer=2, n_head=2, n_positions=32, attn_implementation=name, **SMALL
    )
    return transformers.GPT2LMHeadModel(config)


def llama(name: str) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=16,
        attention_dropout=0.1,
        attn_implementation=name,
        **SMALL,
    )
    return transformers.LlamaModel(config)


def t5(name: str) -> Any:
    config = transformers.T5Config(
        d_model=16,
        d_kv=8,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        decoder_start_token_id=0,
        attn_implementation=name,
        **SMALL,
    )
    return transformers.T5ForConditionalGeneration(config)


def bart(name: str) -> Any:
    config = transformers.BartConfig(
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=32,
        attention_dropout=0.1,
        decoder_start_token_id=1,
        attn_implementation=name,
        **SMALL,
    )
    return transformers.BartModel(config)


def albert(name: str) -> Any:
    config = transformers.AlbertConfig(
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        attn_implementation=name,
        **SMALL,
    )
    return transformers.AlbertModel(config, add_pooling_layer=False)


MODELS: dict[str, Callable[[str], Any]] = {
    made.__name__: made for made in (bert, gpt2, llama, t5, bart)
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def make(name: str, implementation: str) -> Any:
    torch.manual_seed(0)
    model = MODELS[name](implementation) if name in MODELS else albert(implementation)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def inputs(model: Any) -> dict[str, Tensor]:
    given = {"input_ids": IDS, "attention_mask": REAL}
    if model.config.is_encoder_decoder:
        return {**given, "decoder_input_ids": IDS[:, :4]}
    return given


def own_weights(model: Any) -> list[Tensor]:
    """What the model returns itself, in the order of the forward pass."""
    output = model(**inputs(model), output_attentions=True)
    if not model.config.is_encoder_decoder:
        return list(output.attentions)
    pairs = zip(output.decoder_attentions, output.cross_attentions, strict=True)
    return [*output.encoder_attentions, *(layer for pair in pairs for layer in pair)]


def watched(model: Any, run: Callable[[], Any]) -> tuple[Any, list[list[Tensor]]]:
    points = find(model)
    kept: list[list[Tensor]] = [[] for _ in points]
    handles = [point.attach(kept[i].append) for i, point in enumerate(points)]
    try:
        return run(), kept
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_the_models_own_and_nothing_changes(
    name: str, implementation: str, training: bool
) -> None:
    own = own_weights(make(name, "eager").eval())
    model = make(name, implementation).train(training)

    def run() -> tuple[Tensor, list[Tensor], Tensor]:
        torch.manual_seed(7)
        model.zero_grad()
        output = model(**inputs(model))[0]
        output.square().mean().backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        return output, gradients, torch.get_rng_state()

    output, gradients, state = run()
    (seen, seen_gradients, seen_state), kept = watched(model, run)
    assert torch.equal(seen, output)
    assert len(gradients) == len(seen_gradients) > 10
    assert all(map(torch.equal, seen_gradients, gradients))
    assert torch.equal(seen_state, state)
    assert [len(each) for each in kept] == [1] * len(own)
    if not training:
        for (weights,), expected in zip(kept, own, strict=True):
            assert not weights.requires_grad
            torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_those_before_dropout(name: str, implementation: str) -> None:
    own = own_weights(make(name, "eager").eval())[0]
    model = make(name, implementation).eval()
    # The first attention alone is trained, so that what comes into it is the same.
    first = find(model)[0].module
    first.train()
    torch.manual_seed(7)
    dropped, kept = watched(model, lambda: model(**inputs(model))[0])
    assert all(part.training for part in first.modules())
    torch.testing.assert_close(kept[0][0], own, atol=1e-6, rtol=0)
    assert not torch.allclose(dropped, model.eval()(**inputs(model))[0])


def test_without_a_mask_a_language_model_sees_the_past_only() -> None:
    model = make("gpt2", "sdpa").eval()
    _, kept = watched(model, lambda: model(IDS))
    for (weights,), own in zip(
        kept, make("gpt2", "eager").eval()(IDS, output_attentions=True).attentions, strict=True
    ):
        assert torch.equal(weights.triu(1), torch.zeros_like(weights))
        torch.testing.assert_close(weights, own, atol=1e-6, rtol=0)


def test_a_shared_layer_is_one_point_and_its_last_call_stays() -> None:
    own = make("albert", "eager").eval()(IDS, output_attentions=True).attentions
    model = make("albert", "sdpa").eval()
    _, kept = watched(model, lambda: model(IDS))
    assert len(kept) == 1
    assert len(kept[0]) == len(own) == 3
    torch.testing.assert_close(kept[0][-1], own[-1], atol=1e-6, rtol=0)


def test_points_are_named_in_the_order_of_the_forward_pass() -> None:
    model = make("t5", "sdpa")
    layers = ["encoder.block.{}.layer.0.SelfAttention"] * 2
    names = [name.format(i) for i, name in enumerate(layers)]
    for block in range(2):
        names.append(f"decoder.block.{block}.layer.0.SelfAttention")
        names.append(f"decoder.block.{block}.layer.1.EncDecAttention")
    points = find(model)
    assert [point.name for point in points] == names
    assert [point.heads for point in points] == [2] * 6
    run = find(model, run=lambda: model(**inputs(model)))
    assert [point.name for point in run] == names
    assert (
        "encoder.block.{0-1}.layer.0.SelfAttention (Hugging Face T5Attention, sdpa, 2 heads)"
        in (describe(points, ["loss"], "8 B"))
    )


def test_removing_leaves_the_implementation_as_it_was() -> None:
    interface = transformers.AttentionInterface
    method, known = interface.get_interface, dict(interface._global_mapping)
    model = make("bert", "sdpa")
    handles = [point.attach(lambda weights: None) for point in find(model)]
    assert interface.get_interface is not method
    assert model.config._attn_implementation == "sdpa"
    for handle in handles:
        handle.remove()
    assert interface.get_interface is method
    assert dict(interface._global_mapping) == known
    assert not any(module._forward_hooks for module in model.modules())


def test_another_model_of_the_same_kind_is_not_watched() -> None:
    kept: list[Tensor] = []
    model, other = make("bert", "sdpa"), make("bert", "sdpa")
    handle = find(model)[0].attach(kept.append)
    other(IDS)
    assert not kept
    model(IDS)
    assert len(kept) == 1
    handle.remove()


def test_an_implementation_that_somebody_registered() -> None:
    def shout(module: Any, query: Tensor, key: Tensor, value: Tensor, *_: Any, **__: Any) -> Any:
        return value.transpose(1, 2).contiguous(), None

    transformers.AttentionInterface.register("shout", shout)
    try:
        model = make("bert", "eager").eval()
        model.set_attn_implementation("shout")
        output, kept = watched(model, lambda: model(IDS)[0])
        assert torch.equal(output, model(IDS)[0])
        own = make("bert", "eager").eval()(IDS, output_attentions=True).attentions
        torch.testing.assert_close(kept[0][0], own[0], atol=1e-6, rtol=0)
    finally:
        transformers.AttentionInterface._global_mapping.pop("shout")


def allowed(mask: Any, causal: bool, **given: Any) -> Tensor:
    query = torch.zeros(1, 2, 3, 4, dtype=torch.float64)
    key = torch.zeros(1, 2, 4, 4, dtype=torch.float64)
    module: Any = SimpleNamespace(is_causal=causal)
    made = eager_mask(module, query, key, mask, given)
    assert made is not None
    assert set(made.unique().tolist()) <= {0.0, torch.finfo(torch.float64).min}
    return (made == 0)[0, 0].int()


def test_masks_of_other_implementations_become_numbers_to_add() -> None:
    query = torch.zeros(1, 2, 3, 4)
    assert eager_mask(nn.Identity(), query, query, None, {"is_causal": False}) is None
    # Three queries and four keys: the last query is at the last key.
    past = torch.ones(3, 4).tril(1).int()
    assert torch.equal(allowed(None, True), past)
    padded = torch.tensor([[0, 1, 1, 1]])
    assert torch.equal(allowed(padded, True), past * padded[0].int())
    assert torch.equal(allowed(padded, False), padded.int().expand(3, 4))
    assert torch.equal(allowed(None, True, sliding_window=2), (past - past.tril(-1)).int())
    block = SimpleNamespace(mask_mod=lambda row, head, query, key: query != key)
    assert torch.equal(allowed(block, True), 1 - torch.eye(3, 4).int())
