from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from attnscope.errors import AttnscopeError
from attnscope.models.kernel_attention import KernelAttention
from attnscope.probes.landscapes.directions import (
    Directions,
    matching,
    move,
    random_directions,
    still,
)


class Two(nn.Module):
    """Two layers of attention, a batch norm with its buffers, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        source = torch.Generator().manual_seed(0)
        self.layers = nn.ModuleList(KernelAttention(4, 2, generator=source) for _ in range(2))
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.drop(self.norm(x.flatten(0, 1)))


def test_names_by_ending_and_by_pattern() -> None:
    model = Two()
    assert matching(model, "W_Q") == ("layers.0.W_Q", "layers.1.W_Q")
    assert matching(model, "layers.1.W_[QK]") == ("layers.1.W_Q", "layers.1.W_K")
    assert matching(model, ("W_K", "layers.0.W_Q")) == (
        "layers.0.W_Q",
        "layers.0.W_K",
        "layers.1.W_K",
    )
    assert len(matching(model, "*")) == len(list(model.parameters()))


def test_a_name_that_matches_nothing_gets_a_near_one() -> None:
    with pytest.raises(AttnscopeError, match=r"named 'W_q'\. Did you mean 'W_Q'\?"):
        random_directions(Two(), ("W_q", "W_K"))
    with pytest.raises(AttnscopeError, match="expected one or more"):
        random_directions(Two(), ())


def test_filters_have_the_norms_of_the_parameters() -> None:
    model = Two()
    drawn = random_directions(model, ("W_Q", ("W_K", "norm.weight")), seed=3)
    assert set(drawn.parts) == {
        *(f"layers.{i}.W_{name}" for i in (0, 1) for name in "QK"),
        "norm.weight",
    }
    own = model.get_parameter("layers.1.W_Q").detach()
    part = drawn.parts["layers.1.W_Q"]
    torch.testing.assert_close(part[0].flatten(1).norm(dim=1), own.flatten(1).norm(dim=1))
    assert not part[1].any()  # the second direction does not move W_Q
    torch.testing.assert_close(
        drawn.parts["norm.weight"][1].norm(), model.get_parameter("norm.weight").detach().norm()
    )
    blocks = [model.get_parameter(f"layers.{i}.W_Q").detach() for i in (0, 1)]
    assert drawn.norms[0] == pytest.approx(float(torch.stack(blocks).norm()))
    assert drawn.filter_normalised is True
    assert "filter-normalised, draw 3" in drawn.words
    assert drawn.labels == ("W_Q", "W_K, norm.weight")


def test_without_filters_a_direction_has_norm_one() -> None:
    drawn = random_directions(Two(), (("W_Q", "W_K"),) * 2, filter_normalised=False)
    np.testing.assert_allclose(drawn.norms, [1.0, 1.0], rtol=1e-12)
    assert drawn.filter_normalised is False
    assert "not filter-normalised" in drawn.words


def test_a_seed_is_a_draw() -> None:
    model = Two()
    first, again, other = (random_directions(model, ("W_Q",), seed=s) for s in (1, 1, 2))
    name = "layers.0.W_Q"
    assert torch.equal(first.parts[name], again.parts[name])
    assert not torch.equal(first.parts[name], other.parts[name])


def test_directions_that_lead_nowhere_are_refused() -> None:
    model = Two()
    nn.init.zeros_(model.norm.bias)
    with pytest.raises(AttnscopeError, match=r"direction norm\.bias has norm 0"):
        random_directions(model, ("W_Q", "norm.bias"))
    with pytest.raises(AttnscopeError, match="has norm nan"):
        Directions({"a": torch.tensor([[float("nan")]])}, "mine", ("a",))


def test_a_model_comes_back_bit_for_bit_also_after_an_error() -> None:
    model = Two().train()
    model.layers[0].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    random = torch.get_rng_state()
    drawn = random_directions(model, ("W_Q", "W_K"))

    def disturb() -> None:
        with still(model) as start:
            assert not any(module.training for module in model.modules())
            move(model, start, drawn, (0.3, 1e9))
            model.norm.running_mean += 1
            torch.rand(3)
            raise ValueError("the loss broke")

    with pytest.raises(ValueError, match="the loss broke"):
        disturb()
    assert all(torch.equal(before[name], t) for name, t in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), random)


def test_moving_adds_multiples_of_the_directions() -> None:
    model = Two()
    drawn = random_directions(model, ("W_Q", "W_K"))
    with still(model) as start:
        move(model, start, drawn, (0.5, -2.0))
        for name, scale, index in (("layers.0.W_Q", 0.5, 0), ("layers.1.W_K", -2.0, 1)):
            expected = start[name] + scale * drawn.parts[name][index]
            torch.testing.assert_close(model.get_parameter(name).detach(), expected)
        assert torch.equal(model.get_parameter("layers.0.W_V"), start["layers.0.W_V"])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_plane_through_a_point_that_is_no_number_gets_a_sentence(bad: float) -> None:
    model = Two()
    with torch.no_grad():
        model.get_parameter("layers.1.W_K")[0, 0, 0] = bad
    with pytest.raises(AttnscopeError, match=r"layers\.1\.W_K has 1 entries that are not finite"):
        random_directions(model, ("W_Q", "W_K"))
    random_directions(model, ("W_Q", "W_V"))  # elsewhere there is nothing wrong
