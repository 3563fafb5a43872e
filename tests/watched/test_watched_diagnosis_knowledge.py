"""Knowledge without attention is told from having both, and from having neither."""

from __future__ import annotations

from pathlib import Path

from diagnosed_toys import Finder, scale_queries_and_keys, watched

from attnscope.watched.chart import chart_of
from attnscope.watched.diagnosis.knowledge import LEARNED, diagnose


def tiny(model: Finder) -> None:
    scale_queries_and_keys(model, 1e-3)


def test_a_model_that_has_learned_words_under_uniform_attention(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", tiny, plain=True, lr=0.5)
    found = diagnose(chart_of(tree))
    assert found is not None
    assert found.name == "knowledge"
    losses = tree["observables/loss"].to_numpy()[0]
    assert found.evidence["loss now"] < LEARNED * found.evidence["loss at first"]
    # Around the step where it says the loss fell, it fell.
    level = LEARNED * found.evidence["loss at first"]
    clock = tree["observables/time_every_1"].to_numpy()
    assert 0 < found.since_step < 60
    assert losses[clock >= found.since_step + 5].max() < level
    assert losses[(clock > 0) & (clock < found.since_step)].max() > level
    assert "Snell 2021" in found.advice


def test_a_model_that_has_learned_nothing(tmp_path: Path) -> None:
    assert (
        diagnose(chart_of(watched(tmp_path / "run", tiny, plain=True, lr=1e-4, noise=True))) is None
    )


def test_a_model_that_has_learned_and_attends(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None
