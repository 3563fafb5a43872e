"""The studies of Aoyama 2025, smaller than quick."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnscope.claims import examine_all
from attnscope.errors import AttnscopeError
from attnscope.experiment import solve
from attnscope.studies.aoyama2025 import Emergence, Surrogate


def test_emergence_reads_heads_and_is_undecided_when_none_appears() -> None:
    study = Emergence.at("quick", steps=4, points=3, probes=3)
    run = study.read(solve(study).tree)
    found = {each.key: each.verdict for each in examine_all(study.claims(), run)}
    assert found == {"appear": "fails", "law": "undecided"}
    assert study.figures(run)
    assert study.tables(run)


def test_the_slope_of_a_known_law_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Surrogate.at("quick", steps=4, length=8, held_out=4)
    run = study.read(solve(study).tree)
    sizes = xr.DataArray(np.array(study.batches, dtype=float), dims="case")
    known = 1e5 * sizes**0.6 * xr.DataArray([1.0, 1.1, 1.2], dims="seed")
    monkeypatch.setattr(Surrogate, "tokens", lambda self, run: known)
    np.testing.assert_allclose(study.slope(run), 0.6)
    found = {each.key: each for each in examine_all(study.claims(), run)}
    assert found["exponent"].verdict == "holds"
    assert found["exponent"].control_fails
    assert study.figures(run)
    assert study.tables(run)


def test_what_is_refused_is_quoted() -> None:
    with pytest.raises(AttnscopeError, match=r"batches = \(32,\)"):
        Surrogate(batches=(32,))
    with pytest.raises(AttnscopeError, match="'8 by 64': expected batch x context"):
        Emergence(settings_tried=("8 by 64",))
    with pytest.raises(AttnscopeError, match="length = 4"):
        Emergence(settings_tried=("8 x 4",))
