"""Attention that never leaves the average is told from attention that does."""

from __future__ import annotations

from pathlib import Path

from diagnosed_toys import scale_queries_and_keys, watched

from attnscope.watched.chart import chart_of
from attnscope.watched.diagnosis.uniform import UNIFORM, diagnose


def test_a_model_whose_queries_and_keys_are_tiny(tmp_path: Path) -> None:
    tree = watched(
        tmp_path / "run", lambda model: scale_queries_and_keys(model, 1e-3), plain=True, lr=0.5
    )
    found = diagnose(chart_of(tree))
    assert found is not None
    assert (found.name, found.since_step, found.layer, found.head) == ("uniform", 0, 0, None)
    distances = tree["observables/distance_to_uniform"].to_numpy()[0]
    assert found.evidence["largest distance to uniform, at first"] == distances[0].max()
    assert found.evidence["largest distance to uniform, now"] < UNIFORM / 10
    assert "still uniform after 60 steps in the only layer" in found.sentence
    assert "Snell 2021" in found.advice


def test_a_model_that_attends(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None
