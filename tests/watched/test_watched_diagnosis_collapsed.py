"""Collapsed entropy is told from attention that is sharp because the task is solved."""

from __future__ import annotations

from pathlib import Path

from diagnosed_toys import scale_queries_and_keys, watched

from attnscope.watched.chart import chart_of
from attnscope.watched.diagnosis.collapsed import COLLAPSED, diagnose


def test_a_model_that_looks_at_one_word_and_learns_nothing(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", lambda model: scale_queries_and_keys(model, 12.0), noise=True)
    found = diagnose(chart_of(tree))
    assert found is not None
    assert (found.name, found.layer) == ("collapsed", 0)
    spread = tree["observables/relative_entropy"].to_numpy()[0, :, 0].mean(axis=-1)
    steps = tree["observables/time"].to_numpy()
    assert (spread[steps >= found.since_step] < COLLAPSED).all()
    assert found.since_step == 0 or spread[steps < found.since_step][-1] >= COLLAPSED
    assert found.evidence["loss now"] > 0.9 * found.evidence["loss when it collapsed"]
    assert "Zhai" in found.advice


def test_a_model_that_looks_at_one_word_and_is_right(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", lambda model: scale_queries_and_keys(model, 12.0), steps=150)
    spread = tree["observables/relative_entropy"].to_numpy()[0, -1, 0].mean()
    assert spread < COLLAPSED
    assert diagnose(chart_of(tree)) is None


def test_a_model_that_spreads_its_attention(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run", noise=True))) is None
