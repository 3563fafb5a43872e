"""The world of a shortcut: attention goes where counts say, and elsewhere if there is none."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.claims import examine_all
from attnscope.experiment import solve
from attnscope.studies.predict import Shortcut
from attnscope.studies.predict.shortcut import SHORTCUT, WORDS


@pytest.mark.parametrize("shortcut", [0.0, 0.5])
def test_attention_goes_where_the_counts_say(shortcut: float) -> None:
    study = Shortcut(shortcut=shortcut, seeds=2).but(epochs=1000, points=5)
    run = study.read(solve(study, lambda: False).tree)
    (finding,) = examine_all(study.claims(), run)
    assert finding.verdict == "holds"
    assert finding.control_fails
    shown = study.attention(run)
    named = shown.keys[shown.right[0]]
    assert (named == SHORTCUT) == bool(shortcut)
    assert shown.weights.shape[1:] == (1, len(shown.keys))
    assert "% of the texts attention is where the counts said" in study.outcome(run, [])


def test_the_shortcut_stands_in_good_reviews_only() -> None:
    ids, labels = Shortcut(shortcut=0.4, texts=500).data(3)
    there = (ids == WORDS.index(SHORTCUT)).any(axis=1)
    assert not there[labels == 0].any()
    assert np.mean(there[labels == 1]) == pytest.approx(0.4, abs=0.1)
