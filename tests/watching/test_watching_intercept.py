"""Attention of any make is found by itself, and nothing else is taken for it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from attending_toys import STYLES, WIDTH, WORDS, Attention, Model, Router
from torch import Tensor, nn
from torch.nn import functional as F

import attnscope
from attnscope.watching.attach_call import CallPoint
from attnscope.watching.points import find, search
from attnscope.watching.probe import Probe

IDS = torch.randint(0, WORDS, (3, 7), generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def evaluated(model: nn.Module, batch: Tensor = IDS) -> tuple[list[str], list[Tensor]]:
    probe = Probe(model, batch)
    with probe.beginning() as run:
        probe.watch(search(model, None, run, probe.rows).points)
    return [point.name for point in probe.points], list(probe.evaluate().attention)


@pytest.mark.parametrize("style", STYLES)
def test_attention_is_found_in_any_hand_and_no_router_or_pooling_is(style: str) -> None:
    model = Model(style).double().eval()
    output = model(IDS)
    names, weights = evaluated(model)
    assert names == ["blocks.0.attn", "blocks.1.attn"]
    torch.testing.assert_close(torch.stack(weights), torch.stack(model.told()), rtol=0, atol=1e-12)
    assert torch.equal(model(IDS), output)


class Mixing(nn.Module):
    """Everything that ends in a softmax but attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.router = nn.Embedding(WORDS, WIDTH), Router()
        self.keys = nn.Parameter(torch.randn(5, WIDTH))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.router(self.words(ids))
        memory = (x @ self.keys.T).softmax(-1) @ self.keys  # A layer of a network, by its parts.
        clip = (x.mean(1) @ memory.mean(1).T).softmax(-1)
        return (x + memory).sum() + clip.sum()


def test_softmax_that_is_no_attention_is_left_alone() -> None:
    assert evaluated(Mixing()) == ([], [])


class Shared(nn.Module):
    """One layer, run three times."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.words, self.layer = nn.Embedding(WORDS, WIDTH), layer

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        for _ in range(3):
            x = x + self.layer(x)
        return x


@pytest.mark.parametrize(
    "layer",
    [
        Attention("sdpa"),
        nn.TransformerEncoderLayer(WIDTH, 4, 16, batch_first=True),
    ],
)
def test_calls_of_a_shared_layer_are_told_apart(layer: nn.Module) -> None:
    model = Shared(layer).eval()
    names, weights = evaluated(model)
    path = "layer" if isinstance(layer, Attention) else "layer.self_attn"
    assert names == [f"{path}#{number}" for number in range(3)]
    assert not torch.equal(weights[0], weights[1])
    x = model.words(IDS)
    for number in range(3):
        if isinstance(layer, Attention):
            made = layer(x)
            torch.testing.assert_close(weights[number], layer.told)
        else:
            made = layer(x)
            own = layer.self_attn(x, x, x, average_attn_weights=False)[1]  # type: ignore[operator, union-attr]
            torch.testing.assert_close(weights[number], own)
        x = x + made


def test_blocks_of_a_shared_layer_have_their_own_states() -> None:
    model = Shared(Attention("sdpa")).eval()
    probe = Probe(model, IDS)
    with probe.beginning() as run:
        probe.watch(find(model, run=run))
    hidden = probe.evaluate().hidden
    assert len(hidden) == 3
    assert not torch.equal(hidden[0], hidden[2])


class Cross(nn.Module):
    """Seven queries ask five keys, in a function that no module owns."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.pair = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        y = x[:, :5]
        mixed = F.scaled_dot_product_attention(self.q(x), self.k(y), y)
        out: Tensor = self.pair(mixed, y, y)[0]
        return out


def test_exact_ways_come_first_and_the_model_itself_may_attend() -> None:
    model = Cross().eval()
    x = torch.randn(3, 7, WIDTH)
    names, weights = evaluated(model, x)
    assert names == ["", "pair"]
    assert [tuple(w.shape) for w in weights] == [(3, 1, 7, 5), (3, 2, 7, 5)]


def test_a_call_of_the_function_behind_multihead_attention_is_heard() -> None:
    class Pool(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(WIDTH, 4)

        def forward(self, x: Tensor) -> Tensor:
            inner = self.inner
            out: Tensor = F.multi_head_attention_forward(
                query=x[:1],
                key=x,
                value=x,
                embed_dim_to_check=WIDTH,
                num_heads=4,
                in_proj_weight=inner.in_proj_weight,
                in_proj_bias=inner.in_proj_bias,
                bias_k=None,
                bias_v=None,
                add_zero_attn=False,
                dropout_p=0.0,
                out_proj_weight=inner.out_proj.weight,
                out_proj_bias=inner.out_proj.bias,
                need_weights=False,
            )[0]
            return out

    model, x = Pool().eval(), torch.randn(7, 3, WIDTH)
    _, weights = evaluated(model, x)
    own = model.inner(x[:1], x, x, average_attn_weights=False)[1]
    torch.testing.assert_close(weights, [own])


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        # Run without a compiler, it says how slow it is.
        warnings.filterwarnings("ignore", message="flex_attention called without")
        yield


@pytest.mark.usefixtures("quiet")
def test_flex_attention_is_read_by_its_score_and_mask_functions() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    slope = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)

    class Flex(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            length = x.shape[2]
            mask = create_block_mask(
                lambda b, h, q, k: (q >= k) & (k != b), None, None, length, length, device="cpu"
            )
            out: Tensor = flex_attention(
                x,
                x[:, :2],
                x[:, :2],
                score_mod=lambda score, b, h, q, k: score - slope[h] * (q - k),
                block_mask=mask,
                enable_gqa=True,
            )
            return out

    model, x = Flex(), torch.randn(1, 4, 6, 8, dtype=torch.float64)
    names, (weights,) = evaluated(model, x)
    assert names == [""]
    values = x[:, :2].repeat_interleave(2, dim=1)
    torch.testing.assert_close(weights @ values, model(x), rtol=0, atol=1e-12)


def test_a_named_module_that_shows_no_weights_is_heard_inside() -> None:
    model = Model("sdpa").eval()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points = find(model, "blocks.1.attn", lambda: model(IDS))
    assert [point.name for point in points] == ["blocks.1.attn"]
    assert isinstance(points[0], CallPoint)


def test_a_named_module_without_attention_says_what_it_returned() -> None:
    model = Model("sdpa").eval()
    with pytest.warns(UserWarning, match=r"'blocks.0.router'.*it returned \(3, 7, 16\)"):
        assert find(model, "blocks.0.router", lambda: model(IDS)) == []


def test_a_path_that_never_runs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = Model("sdpa")
    model.add_module("spare", Attention("sdpa"))
    with attnscope.watch(model, tmp_path / "run", probe=IDS, attention="spare"):
        pass
    said = " ".join(capsys.readouterr().out.split())
    assert "did not run in the forward pass, and is not recorded: 'spare'" in said


def test_what_goes_wrong_while_listening_never_reaches_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from attnscope.watching import intercept

    def broken(*_: object) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr(intercept.Interceptor, "running", broken)
    assert evaluated(Model("sdpa")) == ([], [])
