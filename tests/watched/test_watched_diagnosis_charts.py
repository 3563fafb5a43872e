"""Diagnoses of courses that are written down by hand: what is named, since when, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.chart import Chart
from attnscope.watched.course import Course
from attnscope.watched.diagnosis import DIAGNOSES, diagnose_chart

STEPS = 200
READ = np.arange(0, STEPS + 1, 5)
"""Readings at every fifth step."""
HEALTHY: dict[str, Any] = {
    "relative_entropy": 0.7,
    "distance_to_uniform": 0.3,
    "sink_mass": 0.2,
    "head_distance": 0.2,
    "head_strength": 1.0,
    "query_key_gradient_ratio": 0.5,
    "rank_residual": 0.8,
    "update_ratio": 0.01,
    "weight_norm": 1.0,
    "gradient_norm": 1.0,
    "learning_speed": 0.01,
}
AXES = {"query_key_gradient_ratio": (2,), "rank_residual": (2,), "learning_speed": (3,)}


def chart(losses: np.ndarray | None = None, optimizer: str = "AdamW", **given: Any) -> Chart:
    """Return a run of two layers with four heads; what is given replaces what is healthy.

    A value is a number, or an array along readings and whatever axes it has.
    """
    courses = {}
    for name, value in (HEALTHY | given).items():
        if value is None:
            continue
        shape = (len(READ), *AXES.get(name, (2, 4)))
        whole = np.empty(shape)
        whole[...] = np.reshape(value, np.shape(value) + (1,) * (len(shape) - np.ndim(value)))
        courses[name] = Course(READ, whole)
    if losses is None:
        losses = 2.0 * np.exp(-np.arange(STEPS) / 60) + 0.5
    courses["loss"] = Course(np.arange(len(losses) + 1), np.concatenate([[np.nan], losses]))
    spec = {
        "layers": ["blocks.0.attn", "blocks.1.attn"],
        "blocks": ["words", "blocks.0", "blocks.1"],
        "optimizer": {"name": optimizer, "groups": [{"lr": 1e-3, "weight_decay": 0.01}]},
    }
    return Chart(courses, spec)


def only(given: Chart, name: str) -> Diagnosis:
    """Return the one fault of a run."""
    faults = [found for found in diagnose_chart(given) if found.kind == "fault"]
    assert [found.name for found in faults] == [name]
    return faults[0]


def spike(level: float = 3.0, noise: float = 0.05) -> np.ndarray:
    """Return a loss that falls to 1, jumps at step 101, and comes down to a level."""
    chance = np.random.default_rng(0)
    before = 1.0 + 1.5 * np.exp(-np.arange(100) / 20)
    after = level + 30 * np.exp(-np.arange(100) / 10)
    return np.concatenate([before, after]) + noise * chance.normal(size=STEPS)


def test_a_healthy_run_has_nothing() -> None:
    assert diagnose_chart(chart()) == ()


@pytest.mark.parametrize("seed", range(20))
def test_noisy_batches_are_not_diverging(seed: int) -> None:
    """A loss of .703 after one of .626, when batches differ by a tenth, is nothing."""
    chance = np.random.default_rng(seed)
    losses = 0.70 - 0.04 * np.arange(STEPS) / STEPS + 0.08 * chance.normal(size=STEPS)
    whole = chart(losses)
    for step in range(10, STEPS, 5):
        assert diagnose_chart(whole.until(step)) == ()


def test_losses_of_two_humps_are_not_diverging() -> None:
    """Small batches with a wrong label now and then: most losses low, some high."""
    for seed in range(20):
        chance = np.random.default_rng(seed)
        losses = np.where(chance.random(STEPS) < 0.4, 1.0, 0.15) + 0.1 * chance.random(STEPS)
        assert diagnose_chart(chart(np.concatenate([[1.4, 1.3, 1.2], losses]))) == ()


def test_a_spike_that_was_not_recovered_from() -> None:
    found = only(chart(spike()), "spike")
    assert found.since_step == 101
    assert found.evidence["highest loss since"] == pytest.approx(33, abs=1)
    assert "checkpoint" in found.advice


def test_a_spike_from_which_most_but_not_all_was_won_back() -> None:
    """From 1 to 30 and back to 1.4, with 2.5 at first."""
    found = only(chart(spike(level=1.4)), "spike")
    assert found.since_step == 101


def test_a_spike_that_was_recovered_from() -> None:
    assert diagnose_chart(chart(spike(level=1.0))) == ()


def test_a_spike_takes_its_symptoms_along_and_its_advice_knows_the_optimizer() -> None:
    late = np.where(READ >= 105, 0.01, 0.7)
    ratios = np.where(READ >= 105, 1e-6, 0.5)
    rates = Course(READ, np.where(READ > 100, 0.3, 0.001)[:, None])
    sick = chart(
        spike(), relative_entropy=late, query_key_gradient_ratio=ratios, update_ratio=ratios
    )
    found = only(Chart({**sick.courses, "learning_rate": rates}, sick.spec), "spike")
    assert "collapsed" in found.symptoms
    assert "from 0.001 to 0.3" in found.sentence
    assert "300-fold" in found.advice
    # Larger weights and Adam would do harm, under AdamW.
    assert "larger initial" not in found.advice
    assert "such as Adam" not in found.advice


def test_a_slow_rise_is_diverging() -> None:
    found = only(chart(1 + np.exp(np.arange(STEPS) / 60)), "diverging")
    assert "is diverging" in found.sentence


def test_a_collapse_before_the_loss_rises_is_its_cause() -> None:
    losses = np.concatenate([np.full(120, 1.0), 1 + 0.05 * np.arange(80)])
    losses += 0.01 * np.random.default_rng(0).normal(size=STEPS)
    found = only(chart(losses, relative_entropy=np.where(READ >= 60, 0.01, 0.8)), "collapsed")
    assert found.symptoms == ("diverging",)
    assert found.since_step == 60


def test_collapse_is_not_excused_by_a_loss_that_falls_from_its_own_spike() -> None:
    losses = spike(level=1.5)
    sharp = np.where(READ >= 120, 0.01, np.where(READ >= 100, 0.3, 0.8))
    names = {found.name for found in diagnose_chart(chart(losses, relative_entropy=sharp))}
    symptoms = {
        s for f in diagnose_chart(chart(losses, relative_entropy=sharp)) for s in f.symptoms
    }
    assert "collapsed" in names | symptoms


def test_attention_that_sharpens_while_the_loss_falls_has_earned_it() -> None:
    assert diagnose_chart(chart(relative_entropy=np.linspace(0.9, 0.02, len(READ)))) == ()
    found = only(
        chart(np.full(STEPS, 1.0), relative_entropy=np.linspace(0.9, 0.02, len(READ))), "collapsed"
    )
    assert found.evidence["loss now"] == 1.0


def test_the_date_is_that_of_the_worst_layer() -> None:
    ratios = np.full((len(READ), 2), 1e-7)
    ratios[READ < 140, 1] = 0.02
    ratios[READ >= 140, 1] = 0.009
    found = only(
        chart(
            query_key_gradient_ratio=ratios,
            distance_to_uniform=0.01,
            update_ratio=_updates(1e-7),
            optimizer="SGD",
        ),
        "vanishing",
    )
    assert (found.layer, found.since_step, found.layers) == (0, 0, (0, 1))
    assert "uniform" in found.symptoms
    assert "in place of SGD" in found.advice


def _updates(of_queries: float) -> np.ndarray:
    updates = np.full((len(READ), 2, 4), 0.01)
    updates[..., :2] *= of_queries
    return updates


def test_small_gradients_that_adam_rescales_are_no_fault() -> None:
    """Fine-tuning a small encoder: a ratio below a hundredth at most readings, and it learns."""
    assert diagnose_chart(chart(query_key_gradient_ratio=0.005)) == ()


def test_frozen_queries_are_told_from_small_ones() -> None:
    gradients = np.ones((len(READ), 2, 4))
    gradients[:, 1, :2] = 0.0
    updates = np.full((len(READ), 2, 4), 0.01)
    updates[:, 1, :2] = 0.0
    found = only(chart(gradient_norm=gradients, update_ratio=updates), "frozen")
    assert found.layers == (1,)


def test_a_layer_that_the_optimizer_does_not_hold() -> None:
    speeds = np.full((len(READ), 3), 0.01)
    speeds[:, 2] = 0.0
    sick = chart(learning_speed=speeds)
    facts = {"name": "Adam", "groups": [{"lr": 1e-3}], "left_out": ["blocks.1.attn.q.weight"]}
    found = only(Chart(sick.courses, {**sick.spec, "optimizer": facts}), "never_learns")
    assert found.layers == (1,)
    assert "does not hold" in found.sentence


def test_positions_that_are_alike_explain_vanishing_gradients() -> None:
    residuals = np.array([0.5, 1e-6])
    found = only(
        chart(
            np.full(STEPS, 2.7),
            rank_residual=np.tile(residuals, (len(READ), 1)),
            query_key_gradient_ratio=1e-9,
            update_ratio=_updates(1e-6),
            distance_to_uniform=0.001,
        ),
        "rank_collapse",
    )
    assert set(found.symptoms) >= {"vanishing", "uniform"}
    # Tokens that are alike at the end of a training that learned are no fault.
    assert diagnose_chart(chart(rank_residual=np.tile(residuals, (len(READ), 1)))) == ()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("sink", {"sink_mass": 0.95}),
        ("dead_heads", {"head_strength": np.array([[[0.001, 1, 1, 1]] * 2] * len(READ))}),
        ("duplicate_heads", {"head_distance": 0.0}),
        (
            "one_head",
            {"distance_to_uniform": np.array([[[0.6, 0.01, 0.01, 0.02]] * 2] * len(READ))},
        ),
    ],
)
def test_heads(name: str, given: dict[str, Any]) -> None:
    found = only(chart(**given), name)
    assert found.since_step == 0
    assert found.layer == 0


def test_a_loss_that_is_never_finite() -> None:
    found = only(chart(np.full(STEPS, np.nan)), "no_loss")
    assert "scope.step(loss)" in found.advice
    assert "infinite" in only(chart(np.full(STEPS, np.inf)), "no_loss").sentence
    broken = chart(np.full(STEPS, np.nan)).courses
    weights = Course(READ[:2], broken["weight_norm"].values[:2])
    found = only(Chart({**broken, "weight_norm": weights}), "no_loss")
    assert "no numbers either, since step 6" in found.sentence


def test_an_induction_head_is_a_good_sign_with_its_step() -> None:
    scores = np.full((len(READ), 2, 4), 0.05)
    scores[READ >= 80, 1, 2] = 0.7
    (found,) = diagnose_chart(chart(induction=scores))
    assert (found.name, found.kind, found.layer, found.head) == ("induction", "good", 1, 2)
    assert found.since_step == 80
    assert "between steps 75 and 80" in found.sentence


def test_every_diagnosis_has_a_name_and_says_what_it_reads() -> None:
    for module, words in DIAGNOSES.values():
        assert words
        assert module.READINGS
        assert module.diagnose(Chart({})) is None
