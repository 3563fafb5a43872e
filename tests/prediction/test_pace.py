"""When attention comes: moments of curves, fitted factors, and what is said of a small table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.prediction.pace import (
    MOMENTS,
    PLANS,
    Plan,
    Timed,
    fitted,
    is_fitted,
    known,
    moments,
    pace,
    system_plan,
    tell_when,
    timed,
)
from attnscope.probes.evidence.bags import LabelledBags, labelled_bags


def bags(seed: int = 0) -> LabelledBags:
    dice = np.random.default_rng(seed)
    labels = dice.integers(0, 2, 300)
    ids = dice.integers(2, 40, (300, 7))
    ids[:, 3] = labels
    return labelled_bags(list(ids), labels, 40, 2)


def row(name: str, said: float, seen: tuple[float, ...], role: str = "chosen on") -> Timed:
    both = dict.fromkeys(MOMENTS, said)
    return Timed(name, role, "Lu 2021", "SGD", both, both, dict.fromkeys(MOMENTS, seen))


def test_moments_lie_between_record_points() -> None:
    steps = np.array([0.0, 100.0, 200.0, 300.0])
    found = moments(steps, np.array([0.1, 0.1, 0.5, 0.3]))
    assert found["start"] == pytest.approx(110.0)
    assert found["half"] == pytest.approx(150.0)
    assert all(math.isnan(v) for v in moments(steps, np.full(4, 0.2)).values())


def test_a_factor_is_the_geometric_mean_of_the_sets_fitted_on_alone() -> None:
    rows = (row("a", 100, (100, 300)), row("b", 100, (50,)), row("c", 1, (999,), "judged on"))
    found = fitted(rows, PLANS[0], "half")
    assert found.factor == pytest.approx(1.0)
    assert found.constant == pytest.approx(100.0)
    assert found.sets == ("a", "b")
    # t of one degree of freedom, 12.706; logs ±ln 2, whose standard deviation is √2 ln 2.
    wide = 12.7062 * math.sqrt(2) * math.log(2) * math.sqrt(1.5)
    assert math.log(found.high) == pytest.approx(wide, rel=1e-4)
    assert found.low == pytest.approx(1 / found.high)
    with pytest.raises(AttnscopeError, match="was measured on 1 sets to fit on"):
        fitted(rows[1:], PLANS[0], "half")


def test_times_scale_with_the_rate_and_come_sooner_when_words_say_more() -> None:
    slow = tell_when(bags(), Plan("Lu 2021", "SGD", 0.5, 400))
    fast = tell_when(bags(), Plan("Lu 2021", "SGD", 1.0, 200))
    assert fast["half"].step == pytest.approx(slow["half"].step / 2, rel=0.05)
    mixed = bags().relabelled(np.random.default_rng(5).permutation(bags().labels))
    plan = Plan("Lu 2021", "SGD", 4.0, 400)
    assert tell_when(mixed, plan)["half"].step > 2 * tell_when(bags(), plan)["half"].step
    for told in fast.values():
        assert told.low < told.step < told.high


def test_what_was_not_measured_is_not_told() -> None:
    other = Plan("Snell 2021", "Adam", 1e-3, 1200)
    assert not known(other)
    assert all(math.isnan(told.step) for told in tell_when(bags(), other).values())
    with pytest.raises(AttnscopeError, match="optimizer = 'RMSprop': expected SGD or Adam"):
        system_plan(Plan("Snell 2021", "RMSprop", 1.0, 10))


def test_what_is_kept_held_on_the_sets_that_were_judged() -> None:
    """Half way of the bag of words, within a fifth on every judged set."""
    for plan in PLANS[:2]:
        judged = [
            one
            for one in timed()
            if (one.model, one.optimizer, one.role) == (plan.model, plan.optimizer, "judged on")
        ]
        own = pace(plan, "half")
        assert len(judged) >= 5
        for one in judged:
            said = one.said["half"] * own.factor
            assert abs(said / one.measured("half") - 1) < 0.2, one.name
            assert own.low < one.measured("half") / one.said["half"] < own.high, one.name


def test_what_was_fitted_is_known_by_plan() -> None:
    found = {plan.name: is_fitted(plan) for plan in PLANS}
    assert found == {
        "Lu 2021, SGD": True,
        "Lu 2021, Adam": True,
        "Snell 2021, SGD": True,
        "Snell 2021, Adam": False,
    }
