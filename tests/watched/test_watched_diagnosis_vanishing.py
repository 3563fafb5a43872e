"""Query and key gradients that vanish are told from those that do not."""

from __future__ import annotations

from pathlib import Path

from diagnosed_toys import scale_queries_and_keys, watched

from attnscope.watched.chart import chart_of
from attnscope.watched.diagnosis.vanishing import VANISHING, diagnose


def test_a_model_whose_queries_and_keys_are_tiny(tmp_path: Path) -> None:
    tree = watched(
        tmp_path / "run", lambda model: scale_queries_and_keys(model, 1e-3), plain=True, lr=1e-4
    )
    found = diagnose(chart_of(tree))
    assert found is not None
    # Gradients are those of a step, so the first reading of them is at step 4.
    assert (found.name, found.since_step, found.layer) == ("vanishing", 4, 0)
    first = tree["observables/query_key_gradient_ratio"].to_numpy()[0, 1, 0]
    assert found.evidence["query/key gradient over value gradient, at first"] == first
    assert found.evidence["query/key gradient over value gradient, now"] < VANISHING / 10
    assert "Attention there is uniform" in found.sentence
    assert "such as Adam in place of SGD" in found.advice


def test_a_model_whose_softmax_is_saturated_gets_other_advice(tmp_path: Path) -> None:
    tree = watched(
        tmp_path / "run", lambda model: scale_queries_and_keys(model, 1e3), plain=True, lr=1e-6
    )
    found = diagnose(chart_of(tree))
    assert found is not None
    assert "Attention there is one-hot" in found.sentence
    assert "sigmaReparam" in found.advice


def test_a_model_that_learns_to_attend(tmp_path: Path) -> None:
    assert diagnose(chart_of(watched(tmp_path / "run"))) is None
