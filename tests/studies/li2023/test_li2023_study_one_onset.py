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
