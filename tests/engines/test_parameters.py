"""What both engines ask of a model and a loss."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from toys import Perceptron, Point, flat, quadratic, regression

from attnscope.engines import Descent, Flow, Linear, Memory, snapshots
from attnscope.errors import AttnscopeError

pytestmark = [
    pytest.mark.usefixtures("float64"),
    pytest.mark.parametrize("engine", [Descent(lr=0.1), Flow()], ids=["descent", "flow"]),
]


def test_a_model_without_trainable_parameters_is_refused(engine: Descent | Flow) -> None:
    model = Point(1.0)
    model.x.requires_grad_(False)
    with pytest.raises(AttnscopeError, match="Point has no parameter that requires a gradient"):
        engine.run(model, quadratic, time=1.0, record=[])


def test_mixed_precision_is_refused(engine: Descent | Flow) -> None:
    model = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1).float())
    with pytest.raises(AttnscopeError, match=r"float32.*float64.*expected one dtype"):
        engine.run(model, lambda m: m[0].weight.sum(), time=1.0, record=[])  # type: ignore[operator,index]


@pytest.mark.parametrize(
    ("value", "quoted"),
    [(torch.ones(3), r"shape \(3,\)"), (1.5, r"1\.5"), (None, "None")],
)
def test_a_loss_that_is_no_scalar_tensor_is_refused(
    engine: Descent | Flow, value: object, quoted: str
) -> None:
    def loss(model: nn.Module) -> Tensor:
        if isinstance(value, Tensor):
            return value * model.get_parameter("x").sum()
        return value  # type: ignore[return-value]

    with pytest.raises(AttnscopeError, match=rf"the loss returned.*{quoted}.*expected a tensor"):
        engine.run(Point(1.0), loss, time=1.0, record=[])


def test_a_loss_with_one_element_will_do(engine: Descent | Flow) -> None:
    model, other = Point(1.0), Point(1.0)
    engine.run(model, lambda m: quadratic(m).reshape(1), time=1.0, record=[])
    engine.run(other, quadratic, time=1.0, record=[])
    assert torch.equal(flat(model), flat(other))


def test_an_error_in_the_loss_leaves_a_usable_model(engine: Descent | Flow) -> None:
    calls = 0

    def loss(model: nn.Module) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyError("mine")
        return regression(model)

    model = Perceptron()
    storage = {name: p.data_ptr() for name, p in model.named_parameters()}
    with pytest.raises(KeyError, match="mine"):
        engine.run(model, loss, time=5.0, record=[])
    assert {name: p.data_ptr() for name, p in model.named_parameters()} == storage
    assert torch.isfinite(flat(model)).all()
    assert engine.run(model, regression, time=1.0, record=[]).steps > 0


def test_a_parameter_stored_by_columns_trains_as_any_other(engine: Descent | Flow) -> None:
    class Columns(nn.Module):
        def __init__(self, transposed: bool) -> None:
            super().__init__()
            start = torch.arange(6.0).view(2, 3)
            self.w = nn.Parameter(start.T.contiguous().T if transposed else start)

    scale = torch.arange(1.0, 7.0).view(2, 3)
    ends = []
    for transposed in (False, True):
        model = Columns(transposed)
        engine.run(model, lambda m: (scale * m.w**2).sum() / 9, time=1.0, record=[])  # type: ignore[operator]
        ends.append(model.w.detach())
    torch.testing.assert_close(ends[1], ends[0], rtol=1e-13, atol=0)
    assert not torch.equal(ends[0], torch.arange(6.0).view(2, 3))


def test_zero_size_and_scalar_parameters_train(engine: Descent | Flow) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scalar = nn.Parameter(torch.tensor(2.0))
            self.empty = nn.Parameter(torch.empty(0, 3))

    model = Odd()
    engine.run(model, lambda m: 0.5 * m.scalar**2 + m.empty.sum(), time=1.0, record=[])  # type: ignore[operator,union-attr]
    expected = 2 * 0.9**10 if isinstance(engine, Descent) else 2 * torch.exp(torch.tensor(-1.0))
    assert model.scalar.item() == pytest.approx(float(expected), rel=1e-5)
    assert model.empty.shape == (0, 3)


@pytest.mark.parametrize("shape", [(48, 3), (3, 48), (40, 1), (48,)])
def test_tall_and_wide_parameters_train_as_pytorch_trains_them(
    engine: Descent | Flow, shape: tuple[int, ...]
) -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = nn.Parameter(torch.tensor([1.0, 2.0]))
            self.w = nn.Parameter(torch.linspace(-1, 1, math.prod(shape)).view(shape))
            self.after = nn.Parameter(torch.tensor(3.0))

    scale = torch.linspace(0.1, 1, math.prod(shape)).view(shape)

    def loss(model: nn.Module) -> Tensor:
        assert isinstance(model, Holder)
        return 0.5 * ((scale * model.w**2).sum() + model.before.square().sum() + model.after**2)

    model, start, sink = Holder(), Holder(), Memory()
    engine.run(model, loss, time=2.0, record=[snapshots(model, Linear(2))], sink=sink)

    def decay(rate: Tensor | float) -> Tensor:
        rate = torch.as_tensor(rate)
        return (1 - 0.1 * rate) ** 20 if isinstance(engine, Descent) else torch.exp(-2 * rate)

    for name, rate in (("before", 1.0), ("w", scale), ("after", 1.0)):
        expected = start.get_parameter(name).detach() * decay(rate)
        torch.testing.assert_close(
            model.get_parameter(name).detach(), expected, rtol=1e-5, atol=1e-5
        )
        recorded = torch.from_numpy(sink.arrays[0][name])
        assert torch.equal(recorded[0], start.get_parameter(name).detach())
        torch.testing.assert_close(
            recorded[1], model.get_parameter(name).detach(), rtol=1e-13, atol=1e-15
        )
    assert model.w.is_contiguous()
