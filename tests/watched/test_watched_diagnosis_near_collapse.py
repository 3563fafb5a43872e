"""How far from collapse: told while logits grow and the loss gains nothing, and only then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from diagnosed_toys import watched

from attnscope.theory.zhai2023 import entropy_floor
from attnscope.watched.chart import Chart, chart_of
from attnscope.watched.course import Course
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


def test_a_healthy_model_is_far_from_it(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None
