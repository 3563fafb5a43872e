from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.points import find
from watched_toys import Reader

IDS = torch.arange(24).reshape(4, 6) % 11


class Block(nn.Module):
    """Attention that gives its weights in the way it is told."""

    def __init__(self, give: str = "tuple", dropout: float = 0.0) -> None:
        super().__init__()
        self.give, self.drop = give, nn.Dropout(dropout)
        self.project = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Any:
        heads = self.project(x).unflatten(-1, (2, 4)).transpose(1, 2)
        self.true = torch.softmax(heads @ heads.transpose(-1, -2), dim=-1)
        weights = self.drop(self.true)
        mixed = (weights @ heads).transpose(1, 2).flatten(2)
        if self.give == "weights":
            return weights
        if self.give == "mean":
            return mixed, weights.mean(1)
        if self.give == "dict":
            return {"hidden": mixed, "cache": (heads, heads), "more": {"attention": weights}}
        return (mixed, weights) if self.give == "tuple" else mixed


class Stack(nn.Module):
    def __init__(self, layers: int = 2, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(11, 8)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"attn": Block(**options), "norm": nn.LayerNorm(8)})
            for _ in range(layers)
        )

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        for block in self.blocks:
            out = block["attn"](x)
            x = block["norm"](x + (out[0] if isinstance(out, tuple) else 0))
        return x


def kept_by(model: nn.Module, attention: Any, **options: Any) -> list[list[Tensor]]:
    points = find(model, attention, **options)
    kept: list[list[Tensor]] = [[] for _ in points]
    handles = [point.attach(kept[i].append) for i, point in enumerate(points)]
    model(IDS)
    for handle in handles:
        handle.remove()
    assert not any(module._forward_hooks for module in model.modules())
    model(IDS)
    return kept


@pytest.mark.parametrize("give", ["tuple", "dict", "weights"])
def test_weights_are_recognised_in_what_a_module_returns(give: str) -> None:
    model = Stack(give=give)
    kept = kept_by(model, "blocks.*.attn")
    true = [block["attn"].true for block in model.blocks]
    assert [len(each) for each in kept] == [1, 1]
    for (weights,), own in zip(kept, true, strict=True):
        assert torch.equal(weights, own)
        assert not weights.requires_grad


def test_three_axes_are_one_head() -> None:
    model = Stack(give="mean")
    (weights,) = kept_by(model, ["blocks.1.attn"])[0]
    assert torch.equal(weights, model.blocks[1]["attn"].true.mean(1, keepdim=True))


def test_weights_after_dropout_are_recognised_too() -> None:
    model = Stack(dropout=0.2).train()
    (weights,) = kept_by(model, "blocks.0.attn")[0]
    assert weights.shape == (4, 2, 6, 6)
    assert (weights == 0).any()


def test_an_attribute_need_not_exist_before_the_module_ran() -> None:
    model = Stack(give="nothing")
    assert not hasattr(model.blocks[0]["attn"], "true")
    kept = kept_by(model, "blocks.*.attn:true")
    assert torch.equal(kept[1][0], model.blocks[1]["attn"].true)
    assert not kept[1][0].requires_grad


def test_watching_does_not_change_training_by_a_bit() -> None:
    def gradients(watched: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = Reader()
        handle = find(model, "attention:weights")[0].attach(lambda weights: None)
        if not watched:
            handle.remove()
        loss = model(IDS).square().sum()
        handle.remove()
        return [loss, *torch.autograd.grad(loss, list(model.parameters()))]

    assert all(map(torch.equal, gradients(True), gradients(False)))


def test_a_function_is_called_once_after_each_forward_pass() -> None:
    model, calls = Stack(), []

    def weights(model: nn.Module) -> list[Tensor]:
        calls.append(1)
        return [block["attn"].true for block in model.blocks]

    kept = kept_by(model, weights, run=lambda: model(IDS))
    # Twice to get to know it, once for the forward pass that was watched.
    assert len(calls) == 3
    for (layer,), block in zip(kept, model.blocks, strict=True):
        assert torch.equal(layer, block["attn"].true)
        assert not layer.requires_grad
    points = find(model, weights, run=lambda: model(IDS))
    assert [(point.name, point.heads) for point in points] == [
        ("attention.0", 2),
        ("attention.1", 2),
    ]


def test_layers_of_a_function_stand_side_by_side_if_there_was_no_forward_pass() -> None:
    model = Stack()
    kept = kept_by(model, lambda model: [block["attn"].true for block in model.blocks])
    expected = torch.cat([block["attn"].true for block in model.blocks], dim=1)
    assert [len(each) for each in kept] == [1]
    assert torch.equal(kept[0][0], expected)


def test_pooling_attention_has_one_head_and_one_query() -> None:
    model = Reader()
    (weights,) = kept_by(model, lambda model: model.attention.weights[:, 0, 0])[0]
    assert torch.equal(weights, model.attention.weights[:, :1, :1])


def test_a_path_that_does_not_exist_is_told_the_nearest_names() -> None:
    with pytest.raises(AttnscopeError, match=r"'blocks\.0\.atn'.*nearest.*'blocks\.0\.attn'"):
        find(Stack(), "blocks.0.atn")
    with pytest.raises(AttnscopeError, match=r"no module 'layers\.\*\.attn'"):
        find(Stack(), "layers.*.attn")
    with pytest.raises(AttnscopeError, match=r"write 'attention:weights'"):
        find(Reader(), "attention.weights")
    with pytest.raises(AttnscopeError, match=r"attention=\[3\]: expected a module path"):
        find(Reader(), [3])


def test_a_module_without_weights_is_warned_about_once() -> None:
    model, kept = Stack(give="nothing"), []
    handle = find(model, "blocks.0.attn")[0].attach(kept.append)
    with pytest.warns(UserWarning, match=r"'blocks.0.attn' cannot be read .*returned \(4, 6, 8\)"):
        model(IDS)
    model(IDS)
    handle.remove()
    assert [tuple(weights.shape) for weights in kept] == [(0,)]
    handle = find(model, "blocks.0.attn:wieghts")[0].attach(kept.append)
    with pytest.warns(UserWarning, match="has no attribute 'wieghts'"):
        model(IDS)
    handle.remove()
