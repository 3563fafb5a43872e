"""The predicted onset: closed forms where G stands still, and a trained model where it moves."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnscope.engines import Flow, Linear, Memory, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective
from attnscope.prediction.onset import NOISES, RATE, VALUE_NOISE, Growth, growth
from attnscope.prediction.onset_windows import windows_of
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import near_zero, score_norm

SIZE, SIGMA = 6, 0.004


def standing(sigma: float = SIGMA, until: float = 4000.0) -> Growth:
    """Return the growth under a G of rank one that never changes."""
    dice = np.random.default_rng(1)
    left, right = (side / np.linalg.norm(side) for side in dice.standard_normal((2, SIZE)))
    times = np.linspace(0.0, until, 101)
    one = np.broadcast_to(sigma * np.outer(left, right), (101, SIZE, SIZE))
    return Growth(times, np.stack([one] * 2), 0)


def topical_texts(count: int = 80) -> list[str]:
    """Return texts of two of four topics of four words each."""
    dice = np.random.default_rng(0)
    topics = [[f"{name}{end}" for end in ("one", "two", "three", "four")] for name in "pqrs"]
    found = []
    for _ in range(count):
        first, second = dice.choice(4, 2, replace=False)
        found.append(" ".join(dice.choice(topics[first] + topics[second], 24)))
    return found


@pytest.mark.parametrize("noise", NOISES)
def test_by_flow_it_is_the_closed_form(noise: float) -> None:
    # ε² d_a sinh(2σt) = 1.
    exact = math.asinh(1 / (noise**2 * SIZE)) / (2 * SIGMA)
    said = standing().onset(noise)
    assert said.time == pytest.approx(exact, rel=1e-3)
    assert said.low < exact < said.high
    assert not said.awake


def test_by_descent_every_step_multiplies_by_one_plus_rate_times_sigma() -> None:
    noise = 1e-3
    steps = np.arange(0, 400)
    up, down = (2 * steps * np.log1p(sign * RATE * SIGMA) for sign in (1, -1))
    norms = noise**2 * SIZE / 2 * (np.exp(up) - np.exp(down))
    exact = li2023.measured_onset(RATE * steps, norms).time
    said = standing().onset(noise, RATE)
    assert said.time == pytest.approx(exact, rel=1e-3)
    assert said.time > standing().onset(noise).time


def test_no_onset_and_awake_from_the_start_are_told_apart() -> None:
    asleep = standing(1e-5).onset(1e-3)
    assert math.isnan(asleep.time)
    assert (asleep.until, asleep.awake) == (4000.0, False)
    awake = standing().onset(1.0)
    assert math.isnan(awake.time)
    assert awake.awake


def test_bad_inputs_are_quoted() -> None:
    with pytest.raises(AttnscopeError, match=r"rate = 7\.3 with G known at times 40 apart"):
        standing().onset(1e-3, 7.3)
    with pytest.raises(AttnscopeError, match="draws = 0: expected 1"):
        growth(windows_of(topical_texts(4)), draws=0)


def test_a_trained_model_starts_when_it_was_said() -> None:
    windows, noise = windows_of(topical_texts()), 1e-3
    said = growth(windows, draws=2).onset(noise)
    model = near_zero(windows.vocabulary, "learned", noise, VALUE_NOISE, 5, torch.float64)
    kept, points = Memory(), 101
    curve = Observable("norm", score_norm, (), "", "")
    until = 1.3 * said.time
    Flow(rtol=1e-5, atol=1e-8).run(
        model,
        TopicObjective(windows.masked(5)),
        time=until,
        record=[Record((curve,), Linear(points))],
        sink=kept,
    )
    norms = np.asarray(kept.arrays[0]["norm"])
    came = li2023.measured_onset(np.linspace(0, until, points), norms).time
    assert said.time == pytest.approx(came, rel=0.1)
    assert said.low < came < said.high
    mixed = growth(windows.shuffled(0), draws=1).onset(noise)
    assert math.isnan(mixed.time) or mixed.time > 1.5 * came
