"""One cycle of the learning rate, clipped gradients, and models that change on the way."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from toys import Perceptron, flat, louder, regression, theta

from attnscope.engines import Adam, Descent, Memory, OneCycle, Switch
from attnscope.engines.schedule import Fall
from attnscope.errors import AttnscopeError

pytestmark = pytest.mark.usefixtures("float64")


@given(steps=st.integers(3, 60), data=st.data())
def test_one_cycle_is_pytorchs(steps: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(2, steps - 1))
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, total_steps=steps, pct_start=warmup / steps, anneal_strategy="linear"
    )
    for step in range(steps):
        share, beta = OneCycle(warmup).at(step, steps)
        group = optimizer.param_groups[0]
        assert (0.1 * share, beta) == pytest.approx((group["lr"], group["betas"][0]), abs=1e-12)
        optimizer.step()
        if step + 1 < steps:
            scheduler.step()


def test_descent_with_one_cycle_and_clipping_is_pytorchs() -> None:
    model, other = Perceptron(), Perceptron()
    trained = [p for p in other.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.05, eps=1e-6, weight_decay=0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.05, total_steps=30, pct_start=0.2, anneal_strategy="linear"
    )
    clipped = False
    for step in range(30):
        optimizer.zero_grad()
        regression(other).backward()
        gradients = torch.cat([p.grad.flatten() for p in trained if p.grad is not None])
        clipped |= bool((gradients.abs() > 0.02).any())
        torch.nn.utils.clip_grad_value_(trained, 0.02)
        optimizer.step()
        if step < 29:
            scheduler.step()
    assert clipped
    engine = Descent(
        lr=0.05, optimizer="adam", eps=1e-6, clip=0.02, schedule=OneCycle(warmup=6), tick=1.0
    )
    engine.run(model, regression, time=30, record=[theta(3)])
    torch.testing.assert_close(flat(model), flat(other), rtol=0, atol=1e-12)


def test_gradient_descent_follows_the_schedule() -> None:
    model, other = Perceptron(), Perceptron()
    schedule = OneCycle(warmup=4)
    Descent(lr=0.3, schedule=schedule, tick=1.0).run(model, regression, time=10, record=[theta(2)])
    trained = [p for p in other.parameters() if p.requires_grad]
    for step in range(10):
        gradients = torch.autograd.grad(regression(other), trained, allow_unused=True)
        with torch.no_grad():
            for p, g in zip(trained, gradients, strict=True):
                if g is not None:
                    p -= 0.3 * schedule.at(step, 10)[0] * g
    torch.testing.assert_close(flat(model), flat(other), rtol=0, atol=1e-12)


def test_a_switch_changes_the_model_at_its_step() -> None:
    model, other, sink = Perceptron(), Perceptron(), Memory()
    switch = Switch(at=5, change=louder, meaning="twice the output")
    engine = Descent(lr=0.2, tick=1.0, switches=(switch,))
    engine.run(model, regression, time=12, record=[theta(13)], sink=sink)
    plain = Descent(lr=0.2, tick=1.0)
    first, second = Memory(), Memory()
    plain.run(other, regression, time=5, record=[theta(6)], sink=first)
    louder(other)
    plain.run(other, regression, time=7, record=[theta(8)], sink=second)
    found = torch.tensor(sink.arrays[0]["theta"])
    torch.testing.assert_close(found[:6], torch.tensor(first.arrays[0]["theta"]), rtol=0, atol=0)
    torch.testing.assert_close(found[5:], torch.tensor(second.arrays[0]["theta"]), rtol=0, atol=0)
    assert model.gain == 2.0


def test_a_rate_that_falls_is_that_of_pytorch() -> None:
    """Warm-up to step 4, constant to step 10, then linearly to the end at step 20."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    parts = [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, 1.0, 3),
        torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0, 1),
        torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, 10),
    ]
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, parts, [3, 10])
    rates = []
    for _ in range(20):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    found = [Fall(start=10, warmup=4).at(step, 20) for step in range(20)]
    assert [share for share, _ in found] == pytest.approx(rates)
    assert {beta for _, beta in found} == {0.9}
    assert Adam(steps=20, fall=10, warmup=4).options()["schedule"] == Fall(10, 4)


def test_bad_schedules_are_sentences() -> None:
    with pytest.raises(AttnscopeError, match="fall = 3 with warmup = 4: expected a fall"):
        Fall(3, 4)
    with pytest.raises(AttnscopeError, match="fall = 9 in a run of 9 steps"):
        Fall(9).at(0, 9)
    with pytest.raises(AttnscopeError, match="warmup = 0: expected 1 step or more"):
        OneCycle(warmup=0)
    with pytest.raises(AttnscopeError, match="warmup = 9 in a run of 9 steps"):
        Descent(schedule=OneCycle(warmup=9), tick=1.0).run(
            Perceptron(), regression, time=9, record=[theta(2)]
        )
    with pytest.raises(AttnscopeError, match=r"Switch\(at=-1\): expected a finite time"):
        Switch(at=-1, change=louder)
    with pytest.raises(AttnscopeError, match="clip = 0: expected a finite number above 0"):
        Descent(clip=0)
    with pytest.raises(AttnscopeError, match="eps = nan: expected a finite number above 0"):
        Descent(eps=float("nan"))
