"""How far from collapse: told while logits grow and the loss gains nothing, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from diagnosed_toys import watched

from attnscope.theory.zhai2023 import entropy_floor
from attnscope.watched.chart import Chart, chart_of
from attnscope.watched.course import Course
from attnscope.watched.diagnosis.collapsed import COLLAPSED, HALF
from attnscope.watched.diagnosis.collapsed import diagnose as collapsed
from attnscope.watched.diagnosis.near_collapse import diagnose

READ = np.arange(0, 201, 5)
KEYS = 50


def chart(growth: float, loss: np.ndarray | None = None) -> Chart:
    """Return a run whose logits grow steadily, with rows that are as sharp as can be."""
    scale = 1.0 + growth * READ
    share = entropy_floor(scale, KEYS) / np.log(KEYS)
    heads = np.ones((1, 1, 2))

    def course(values: np.ndarray) -> Course:
        return Course(READ, values[:, None, None] * heads)

    flat = np.random.default_rng(0).normal(0.7, 0.01, 200)
    return Chart(
        {
            "logit_scale": course(scale),
            "relative_entropy": course(share),
            "entropy": course(share * np.log(KEYS)),
            "loss": Course(np.arange(1, 201), flat if loss is None else loss),
        }
    )


def test_logits_that_grow_are_told_with_the_steps_that_are_left() -> None:
    found = diagnose(chart(0.024))
    assert found is not None
    assert (found.name, found.kind, found.layer) == ("near_collapse", "stage", 0)
    limit = found.evidence["norm from which on collapse is possible"]
    assert abs(entropy_floor(limit, KEYS) / np.log(KEYS) - 0.1) < 1e-9
    left = found.evidence["steps until then"]
    assert abs(left - (limit - 1 - 0.024 * 200) / 0.024) <= 1


def test_not_told_of_a_loss_that_falls_nor_of_logits_that_rest() -> None:
    assert diagnose(chart(0.024, 2 * np.exp(-np.arange(200) / 60.0) + 0.5)) is None
    assert diagnose(chart(0.001)) is None
    assert diagnose(Chart({})) is None


def test_a_model_trained_at_a_rate_that_sharpens_attention_for_nothing(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", lr=0.03, noise=True, steps=120)
    found = diagnose(chart_of(tree))
    assert found is not None
    assert (found.name, found.kind, found.layer) == ("near_collapse", "stage", 0)
    spread = tree["observables/relative_entropy"].to_numpy()[0, :, 0].mean(axis=-1)
    steps = tree["observables/time"].to_numpy()
    assert spread[0] > 0.9
    assert COLLAPSED < found.evidence["entropy over its maximum, now"] < HALF
    assert (spread[steps >= found.since_step] < HALF).all()
    assert spread[steps < found.since_step][-1] >= HALF
    # So small a model has few keys: logits are past the limit, and the sentence says so.
    limit = found.evidence["norm from which on collapse is possible"]
    assert found.evidence["norm of a query's logits"] > limit
    assert found.evidence["steps until then"] == 0
    assert "have passed" in found.sentence
    assert "steps away" not in found.sentence
    assert "Zhai" in found.advice
    assert collapsed(chart_of(tree)) is None


def test_the_same_rate_on_a_task_that_is_learned(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run", lr=0.03, steps=120))) is None


def test_the_same_noise_at_a_smaller_rate(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run", lr=0.003, noise=True, steps=120))) is None


def test_a_healthy_model_is_far_from_it(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None
