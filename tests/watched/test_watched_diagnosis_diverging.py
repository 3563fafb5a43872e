"""A loss that rises or is no number is told from one that falls, and from noise."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from diagnosed_toys import watched

from attnscope.watched.chart import chart_of
from attnscope.watched.diagnosis.diverging import diagnose


def test_a_model_whose_loss_is_no_number_any_more(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        # Some readings of such a model cannot be taken, and the recorder says so.
        warnings.simplefilter("ignore")
        tree = watched(tmp_path / "run", plain=True, lr=100.0)
    found = diagnose(chart_of(tree))
    assert found is not None
    losses = tree["observables/loss"].to_numpy()[0]
    bad = np.flatnonzero(~np.isfinite(losses[1:]))[0] + 1
    assert f"not finite at step {bad}" in found.sentence
    assert found.since_step <= bad
    assert (losses[found.since_step : bad] > losses[1]).all()
    assert found.evidence["last finite loss"] == losses[bad - 1]


def test_a_model_that_loses_what_it_had_learned(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", late_lr=3.0)
    found = diagnose(chart_of(tree))
    assert found is not None
    # How fast it is lost is chaotic, and differs between processors; what did it does not.
    assert "is diverging" in found.sentence or "has not come back" in found.sentence
    assert "The learning rate went from 0.02 to 3" in found.sentence
    assert 25 <= found.since_step <= 36
    assert found.evidence["loss now"] > 2 * found.evidence["lowest loss"]


def test_a_model_that_learns(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None


def test_a_model_that_only_sees_noise(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run", noise=True, lr=0.001))) is None
