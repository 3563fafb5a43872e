"""Readings of heads, repeated words, states and speed, each against what it says in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.probes.attention_heads import floor_of_entropy, logit_scale, nearest_head, received
from attnscope.probes.attention_shape import entropy
from attnscope.probes.repeated_tokens import induction, previous_token, repeated_ids
from attnscope.trajectory import open_run
from attnscope.watching import watch

WORDS, WIDTH, HEADS = 30, 16, 4


class Block(nn.Module):
    """Causal attention of four heads with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        out: Tensor = x + self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]
        return out


class Speaker(nn.Module):
    """Two blocks that say the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x)
        return logits


IDS = torch.randint(0, WORDS, (3, 12), generator=torch.Generator().manual_seed(1))


def watched(out: Path, record: Any, steps: int = 0, **given: Any) -> tuple[Speaker, Any]:
    """Return a model and what was read of it."""
    torch.manual_seed(0)
    model = Speaker()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, out, record, every=1, probe=IDS, optimizer=optimizer, **given) as scope:
        for _ in range(steps):
            loss = model(IDS).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss)
    return model, open_run(out)["observables"].to_dataset().isel(run=0)


def test_what_heads_can_write_and_what_they_share(tmp_path: Path) -> None:
    names = ["attention", "head_strength", "head_distance", "sink_mass", "attention_received"]
    model, found = watched(tmp_path / "run", [*names, "logit_scale"])
    part = model.blocks[0].attention
    values = part.in_proj_weight.detach()[2 * WIDTH :].unflatten(0, (HEADS, -1))
    out = part.out_proj.weight.detach().unflatten(1, (HEADS, -1)).transpose(0, 1)
    expected = [float(torch.linalg.norm(o @ v)) for o, v in zip(out, values, strict=True)]
    np.testing.assert_allclose(found["head_strength"][0, 0], expected, rtol=1e-5)
    weights = found["attention"][0, 0].to_numpy()
    apart = [
        min(0.5 * np.abs(weights[:, h] - weights[:, o]).sum(-1).mean() for o in range(4) if o != h)
        for h in range(4)
    ]
    np.testing.assert_allclose(found["head_distance"][0, 0], apart, rtol=1e-5)
    by_position = weights[:, :, 3:].mean(axis=(0, 2))
    np.testing.assert_allclose(found["attention_received"][0, 0], by_position, rtol=1e-5)
    np.testing.assert_allclose(found["sink_mass"][0, 0], by_position.max(-1), rtol=1e-5)
    scales = [
        np.linalg.norm(np.log(row[: i + 1]) - np.log(row[: i + 1]).mean())
        for i, row in enumerate(weights[0, 0])
        if i
    ]
    alone = logit_scale(weights[:1], weights[:1, 0] > 0, np.ones((1, 12), bool))
    assert alone[0] == pytest.approx(np.mean(scales), rel=1e-4)


def test_a_layer_of_one_head_has_no_twin() -> None:
    weights = np.full((1, 1, 3, 3), 1 / 3)
    assert np.isnan(nearest_head(weights, np.ones((1, 3), bool))).all()
    assert np.isnan(received(weights, np.ones((1, 3, 3), bool), np.ones((1, 3), bool))).all()


def test_perfect_heads_have_a_score_of_one() -> None:
    length = 12
    weights = np.zeros((1, 2, length, length))
    for query in range(length):
        weights[0, 0, query, max(query - 5, 0)] = 1.0  # Behind the first occurrence, of six words.
        weights[0, 1, query, max(query - 1, 0)] = 1.0
    np.testing.assert_array_equal(induction(weights), [1.0, 0.0])
    # The second word's first key is the word before it.
    np.testing.assert_array_equal(previous_token(weights), [1 / 11, 1.0])


def test_repeated_words_reach_the_model_and_nothing_else_does(tmp_path: Path) -> None:
    names = ["induction", "previous_token", "duplicate_token", "repetition_gain", "attention"]
    model, found = watched(tmp_path / "run", names)
    ids = torch.from_numpy(repeated_ids(*IDS.shape, WORDS))
    assert (ids[:, :6] == ids[:, 6:]).all()
    with torch.no_grad():
        x = model.words(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(12)
        weights = model.blocks[0].attention(x, x, x, attn_mask=mask, average_attn_weights=False)[1]
        likely = model(ids).log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    expected = np.mean([weights[:, :, q, q - 5].numpy() for q in range(6, 12)], axis=(0, 1))
    np.testing.assert_allclose(found["induction"][0, 0], expected, rtol=1e-5)
    gain = float(likely[:, 6:].mean() - likely[:, :5].mean())
    assert float(found["repetition_gain"][0]) == pytest.approx(gain, rel=1e-4)
    # The probe batch itself is as it was.
    with torch.no_grad():
        x = model.words(IDS)
        own = model.blocks[0].attention(x, x, x, attn_mask=mask, average_attn_weights=False)[1]
    np.testing.assert_allclose(found["attention"][0, 0], own, atol=1e-6)


def test_repeated_words_need_words(tmp_path: Path) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, batch_first=True)
    with pytest.raises(AttnscopeError, match="'induction' needs a model that reads word ids"):
        watch(layer, tmp_path / "run", ["induction"], probe=torch.randn(2, 9, WIDTH))


def test_states_and_speed(tmp_path: Path) -> None:
    names = ["activation_norm", "largest_activation", "learning_speed", "learning_rate"]
    torch.manual_seed(0)
    before = {name: p.detach().clone() for name, p in Speaker().named_parameters()}
    model, found = watched(tmp_path / "run", names, steps=1)
    with torch.no_grad():
        state = model.blocks[0](model.words(IDS))
    assert float(found["activation_norm"][1, 0]) == pytest.approx(
        float(state.norm(dim=-1).mean()), rel=1e-5
    )
    assert float(found["largest_activation"][1, 0]) == pytest.approx(
        float(state.abs().max()), rel=1e-5
    )
    assert np.isnan(found["learning_speed"][0]).all()
    now = {name: p.detach() for name, p in model.named_parameters()}
    names = [name for name in now if name.startswith("blocks.1.")]
    moved = sum(float(((now[n] - before[n]) ** 2).sum()) for n in names)
    size = sum(float((before[n] ** 2).sum()) for n in names)
    speed = dict(zip(found["block"].to_numpy(), found["learning_speed"][1].to_numpy(), strict=True))
    assert speed["blocks.1"] == pytest.approx((moved / size) ** 0.5, rel=1e-3)
    np.testing.assert_array_equal(found["learning_rate"][0], [0.1])


def test_sharpness_is_the_largest_eigenvalue_of_the_hessian(tmp_path: Path) -> None:
    targets = torch.randint(0, WORDS, IDS.shape)
    model, found = watched(tmp_path / "run", ["sharpness"], targets=targets)
    value = float(found["sharpness"][0])
    names, tensors = zip(*model.named_parameters(), strict=True)
    torch.manual_seed(3)
    vector = [torch.randn_like(p) for p in tensors]

    def gradients() -> tuple[Tensor, ...]:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            loss = nn.functional.cross_entropy(model(IDS).flatten(0, 1), targets.flatten())
        return torch.autograd.grad(loss, tensors, create_graph=True)

    # Power iteration finds what is largest in size; the Hessian's largest is positive here.
    for _ in range(60):
        size = sum((v**2).sum() for v in vector) ** 0.5
        vector = [v / size for v in vector]
        product = sum((g * v).sum() for g, v in zip(gradients(), vector, strict=True))
        turned = torch.autograd.grad(product, tensors)
        found_value = float(sum((t * v).sum() for t, v in zip(turned, vector, strict=True)))
        vector = [t.detach() for t in turned]
    assert len(names) == len(tensors)
    assert value == pytest.approx(found_value, rel=0.02)
    assert value >= found_value * (1 - 1e-4)


@pytest.mark.parametrize(
    ("asked", "name", "layers"),
    [
        ("entropy@1", "entropy_at_1", ["blocks.1.attention"]),
        ("entropy@blocks.0.*", "entropy_at_blocks_0", ["blocks.0.attention"]),
        ("weight_norm@0,1", "weight_norm_at_0_1", ["blocks.0.attention", "blocks.1.attention"]),
        ("learning_speed@blocks.*", "learning_speed_at_blocks", None),
    ],
)
def test_some_layers_only(tmp_path: Path, asked: str, name: str, layers: list[str] | None) -> None:
    _, found = watched(tmp_path / "run", [asked, asked.partition("@")[0]], steps=1)
    whole, part = found[asked.partition("@")[0]], found[name]
    if layers is None:
        assert part.shape == (2, 2)
        return
    rows = [0, 1] if len(layers) == 2 else [int(layers[0].split(".")[1])]
    np.testing.assert_array_equal(part, whole[:, rows])
    coordinate = next(c for c in part.coords.values() if list(c.to_numpy().ravel()) == layers)
    assert coordinate.size == len(layers)


def test_layers_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"'entropy@7': there is no '7'.*from 0 to 1"):
        watched(tmp_path / "run", ["entropy@7"])
    with pytest.raises(AttnscopeError, match="is not read by layer or block"):
        watched(tmp_path / "run", ["repetition_gain@0"])


def test_a_context_that_is_shorter_than_the_probe_of_repeated_words(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="'induction' needs a probe batch of rows of 8 words"):
        watch(Speaker(), tmp_path / "run", ["induction"], probe=IDS[:, :6])


def test_entropy_is_never_below_the_floor_of_its_rows() -> None:
    chance = np.random.default_rng(0)
    logits = 4 * chance.normal(size=(2, 3, 6, 6))
    see = np.broadcast_to(np.tril(np.ones((6, 6), dtype=bool)), (2, 6, 6))
    logits = np.where(see[:, None], logits, -np.inf)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    asking = np.ones((2, 6), dtype=bool)
    floor = floor_of_entropy(weights, see, asking)
    # The first query sees one key; both means count it, with 0.
    assert (floor <= entropy(weights, asking)).all()
    assert (floor > 0).all()
    one_key = floor_of_entropy(weights[:, :, :1, :1], see[:, :1, :1], np.ones((2, 1), dtype=bool))
    np.testing.assert_array_equal(one_key, 0.0)
    nobody = floor_of_entropy(weights, see, np.zeros((2, 6), dtype=bool))
    assert np.isnan(nobody).all()


def test_the_floor_of_a_causal_model_is_below_its_entropy_in_single_precision() -> None:
    # Nearly uniform rows: floor and entropy agree to second order, so rounding would show.
    logits = 1e-3 * np.random.default_rng(1).normal(size=(2, 1, 48, 48))
    see = np.broadcast_to(np.tril(np.ones((48, 48), dtype=bool)), (2, 48, 48))
    weights = np.where(see[:, None], np.exp(logits), 0.0)
    weights = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    asking = np.ones((2, 48), dtype=bool)
    gap = entropy(weights, asking) - floor_of_entropy(weights, see, asking)
    assert (np.abs(gap) < 1e-6).all()
