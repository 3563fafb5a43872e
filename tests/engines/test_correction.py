"""How far gradient descent is from its flow, with and without the correction for lr."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toys import THETA, Perceptron, flat, order, regression

from attnscope.engines import Descent, Flow, Memory, Record
from attnscope.engines.observe import Linear

pytestmark = pytest.mark.usefixtures("float64")
RATES = [0.4, 0.2, 0.1, 0.05]
UNTIL = 8.0


def path(engine: Descent | Flow) -> np.ndarray:
    sink = Memory()
    engine.run(
        Perceptron(), regression, time=UNTIL, record=[Record((THETA,), Linear(11))], sink=sink
    )
    assert len(sink.times[0]) == 11
    return sink.arrays[0]["theta"]


def modified(lr: float) -> np.ndarray:
    """Return the end of the flow of L + lr/4 ‖∇L‖², its gradient by differentiating twice."""

    def loss(model: nn.Module) -> Tensor:
        value = regression(model)
        trained = [p for p in model.parameters() if p.requires_grad]
        grads = torch.autograd.grad(value, trained, create_graph=True, allow_unused=True)
        return value + lr / 4 * sum(g.square().sum() for g in grads if g is not None)

    model = Perceptron()
    Flow(rtol=1e-7, atol=1e-8).run(model, loss, time=UNTIL, record=[])
    return flat(model).numpy()


def test_the_gap_is_first_order_in_the_learning_rate_and_second_order_when_corrected() -> None:
    plain, corrected = [], []
    for lr in RATES:
        steps = path(Descent(lr=lr))
        plain.append(np.abs(steps - path(Flow(rtol=1e-7, atol=1e-8, lr=lr))).max())
        fixed = Flow(rtol=1e-7, atol=1e-8, lr=lr, correct=True)
        corrected.append(np.abs(steps - path(fixed)).max())
    assert order(RATES, plain) == pytest.approx(1, abs=0.15)
    assert order(RATES, corrected) == pytest.approx(2, abs=0.25)
    assert all(c < p / 2 for c, p in zip(corrected, plain, strict=True))


def test_the_corrected_field_is_the_modified_loss_up_to_second_order() -> None:
    gaps = []
    for lr in RATES:
        end = path(Flow(rtol=1e-7, atol=1e-8, lr=lr, correct=True))[-1]
        gaps.append(np.abs(end - modified(lr)).max())
    assert order(RATES, gaps) == pytest.approx(2, abs=0.25)


def test_a_learning_rate_alone_does_not_change_the_flow() -> None:
    plain, placed = Perceptron(), Perceptron()
    Flow().run(plain, regression, time=UNTIL, record=[])
    Flow(lr=0.5).run(placed, regression, time=UNTIL, record=[])
    assert torch.equal(flat(plain), flat(placed))
