"""The classifier of Song 2024: padding, kernels, and how many parameters there are."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernels import KERNELS


def small(kernel: str = "softmax", **change: object) -> KernelClassifier:
    fields = {"width": 6, "hidden": 10, "heads": 2, "head_width": 4, "mlp_hidden": 5, "seed": 3}
    model = KernelClassifier(9, 7, 3, kernel=kernel, **{**fields, **change})  # type: ignore[arg-type]
    return model.double().eval()


@pytest.fixture
def ids(generator: torch.Generator) -> Tensor:
    return torch.randint(9, (4, 7), generator=generator)


@pytest.mark.parametrize("kernel", KERNELS)
def test_padding_never_changes_a_logit(kernel: str, ids: Tensor) -> None:
    model = small(kernel)
    short = model(ids[:, :5], torch.ones(4, 5, dtype=torch.bool))
    torch.testing.assert_close(short, model(ids[:, :5]))
    mask = torch.arange(7) < 5
    for padding in (0, 8):
        padded = ids.masked_fill(~mask, padding)
        torch.testing.assert_close(model(padded, mask.expand(4, 7)), short)
    # Without the mask it would.
    assert (model(ids) - short).abs().max() > 1e-6


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_against_the_formula(kernel: str, ids: Tensor) -> None:
    """One sequence and one layer, written out head by head and token by token."""
    model = small(kernel, layers=1)
    layer = model.attention[0]
    block = model.layers[0]
    x = model.tokens.weight[ids[0]] + model.positions.weight
    z = F.layer_norm(x, (6,)) * block.norm_1.weight + block.norm_1.bias
    added = layer.b_O.clone()
    heads = []
    for h in range(2):
        q, k, v = (
            z @ layer.get_parameter(f"W_{m}")[h] + layer.get_parameter(f"b_{m}")[h] for m in "QKV"
        )
        if kernel == "softmax":
            s = torch.softmax(q @ k.T / math.sqrt(4), dim=1)
        else:
            s = torch.exp(-((q[:, None] - k[None]) ** 2).sum(-1) / (2 * math.sqrt(4)))
        heads.append(s @ v @ layer.W_O[h])
    x = x + sum(heads) + added
    inner = F.gelu(block.W_1(F.layer_norm(x, (6,))))
    x = x + block.W_2(inner)
    pooled = F.layer_norm(x, (6,)).mean(dim=0)
    expected = model.head_2(F.relu(model.head_1(pooled)))
    torch.testing.assert_close(model(ids)[0], expected)


def test_the_kernel_can_be_switched(ids: Tensor) -> None:
    model, other = small("softmax"), small("gaussian")
    first = model(ids)
    assert (first - other(ids)).abs().max() > 1e-6
    model.set_kernel("gaussian")
    assert model.kernel == "gaussian"
    torch.testing.assert_close(model(ids), other(ids))
    model.set_kernel("softmax")
    torch.testing.assert_close(model(ids), first)
    with pytest.raises(AttnscopeError, match="gaussan"):
        model.set_kernel("gaussan")


def test_the_number_of_parameters_written_out() -> None:
    model = KernelClassifier(257, 4000, 2)
    embeddings = 257 * 64 + 4000 * 64
    attention = 3 * 2 * (64 + 1) * 32 + (2 * 32 + 1) * 64
    dense = (64 + 1) * 128 + (128 + 1) * 64
    head = (64 + 1) * 128 + (128 + 1) * 2
    expected = embeddings + 2 * (attention + dense + 4 * 64) + 2 * 64 + head
    assert sum(p.numel() for p in model.parameters()) == expected == 348_098


def test_a_seed_fixes_the_start_and_leaves_the_source_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = small(), small("gaussian"), small(seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    pairs = zip(one.parameters(), same.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(one.tokens.weight, other.tokens.weight)
    large = KernelClassifier(500, 500, 2).tokens.weight
    assert float(large.detach().std()) == pytest.approx(0.02, rel=0.05)


def test_dropout_acts_in_training_alone(ids: Tensor) -> None:
    model = small(dropout=0.5)
    assert torch.equal(model(ids), model(ids))
    model.train()
    assert not torch.equal(model(ids), model(ids))
    still = small(dropout=0.0).train()
    assert torch.equal(still(ids), still(ids))


def test_weights_are_those_of_the_layers(ids: Tensor) -> None:
    model = small()
    mask = torch.arange(7) < torch.tensor([[7], [3], [1], [5]])
    weights = [layer.detach() for layer in model.attention_weights(ids, mask)]
    assert [tuple(w.shape) for w in weights] == [(4, 2, 7, 7)] * 2
    for layer in weights:
        torch.testing.assert_close(layer.sum(-1), torch.ones(4, 2, 7, dtype=torch.float64))
        assert float(layer.masked_fill(mask[:, None, None], 0).abs().max()) == 0
    # Those of the second layer come of what the first one made.
    x = model.tokens(ids) + model.positions.weight
    x = model.layers[0](x, mask)
    expected = model.attention[1].weights(model.layers[1].norm_1(x), mask)
    torch.testing.assert_close(weights[1], expected)


def test_bad_input_gets_a_sentence(ids: Tensor) -> None:
    with pytest.raises(AttnscopeError, match="n from 1 to length = 7"):
        small()(torch.zeros((2, 8), dtype=torch.int64))
    with pytest.raises(AttnscopeError, match="layers = 0: expected 1 or more"):
        small(layers=0)
