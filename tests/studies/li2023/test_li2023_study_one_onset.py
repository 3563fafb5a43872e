"""One onset: predicted by a run without attention, at whatever noise, rate and topics."""

from __future__ import annotations

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.li2023 import OneOnset

SMALL = {"topics": 3, "words": 3, "documents": 40, "length": 32}


def test_a_sweep_over_noise_and_rate_has_an_onset_at_every_point(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tree = attnscope.sweep(
        OneOnset(until=2000.0, points=51, noise=1e-2, **SMALL),
        {"noise": [1e-2, 1e-3], "rate": [0.0, 40.0]},
        tmp_path / "s",
        workers=1,
    )
    final = tree["final"].sel(case="learned").isel(seed=0)
    came, ahead = (final[name].transpose("noise", "rate") for name in ("onset_came", "onset_ahead"))
    np.testing.assert_allclose(ahead, came, rtol=0.05)
    # A smaller start and larger steps both come later.
    assert (came.sel(noise=1e-3) > came.sel(noise=1e-2)).all()
    assert (came.sel(rate=40.0) > came.sel(rate=0.0)).all()
    assert (tree["findings"].control_fails.sel(claim=["onset", "expected"]) == 1).all()


def test_the_boundary_of_theory_is_where_the_predicted_onset_leaves_the_run(tmp_path) -> None:  # type: ignore[no-untyped-def]
    study = OneOnset(until=2000.0, points=51, noise=1e-2, **SMALL)
    run = study.read(attnscope.run(study, tmp_path / "run", workers=1))
    closed = float(run.of("learned").theory.onset_closed.isel(seed=0))
    margins = study.margins()
    assert set(margins) <= {claim.key for claim in study.claims()}
    inside, named = margins["onset"]
    assert inside > 0
    assert named == "predicted onset = end of the run"
    # With σ of one and the same run the noise enters by its square, and larger steps come later.
    less = study.but(noise=1e-3).margins()["onset"][0]
    assert inside - less == pytest.approx(2 * np.log(10))
    assert study.but(rate=40.0).margins()["onset"][0] < inside
    for factor, sign in ((0.95, -1), (1.05, 1)):
        other = study.but(until=factor * closed).margins()["closed"][0]
        assert np.sign(other) == sign


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rate": 7.0}, "expected a rate that divides 40"),
        ({"tau": 5}, "tau = 5 topics in a document"),
    ],
)
def test_what_cannot_be_is_a_sentence(settings: dict[str, float], told: str) -> None:
    with pytest.raises(AttnscopeError, match=told):
        OneOnset(**settings)
