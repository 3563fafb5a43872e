"""The studies of Aoyama 2025, smaller than quick."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnscope.claims import examine_all
from attnscope.errors import AttnscopeError
from attnscope.experiment import solve
from attnscope.studies.aoyama2025 import Emergence, Surrogate

SMALL = {"seeds": 2, "probes": 3, "words": 32, "width": 8, "contexts": (8, 16), "context": 8}


def test_emergence_reads_heads_and_is_undecided_when_none_appears() -> None:
    study = Emergence.at("quick", steps=4, every=2, batch=4, batches=(4, 8, 16), **SMALL)
    run = study.read(solve(study).tree)
    found = {each.key: each.verdict for each in examine_all(study.claims(), run)}
    assert found["appear"] == "fails"
    assert found["repetition"] == "holds"
    assert {found[key] for key in ("batch-exponent", "context-exponent", "turn")} == {"undecided"}
    assert [fit is None for fit in study.fits(run)] == [True, True]
    assert len(study.figures(run)[0].panels) == 3
    assert len(study.tables(run)[0].rows) == len(study.cases)


def test_emergence_finds_a_known_law_and_its_controls_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Emergence.at("quick", steps=4, every=2, batch=4, batches=(4, 8, 16), **SMALL)
    run = study.read(solve(study).tree)
    seeds = xr.DataArray([1.0, 1.01], dims="seed")

    def known(self: Emergence, run: object, case: str, level: float = 0.5) -> xr.DataArray:
        """Updates with a critical batch of 8, and tokens as the root of the context."""
        batch, context = self.pair(case)
        return 100 * (1 + 8 / batch) / np.sqrt(context) * seeds

    monkeypatch.setattr(Emergence, "updates", known)
    found = {each.key: each for each in examine_all(study.claims(), run)}
    for key in ("batch-exponent", "context-exponent", "turn"):
        assert found[key].verdict == "holds"
        assert found[key].control_fails
    np.testing.assert_allclose([fit.size for fit in study.fits(run) if fit], 8.0)
    exponents = {row[0]: row[1] for row in study.tables(run)[1].rows}
    assert exponents["exponent in the context"] == pytest.approx(0.5)


def test_a_head_that_is_there_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnscope.studies.aoyama2025.emergence.DONE", -1.0)
    study = Emergence.at("quick", steps=8, every=2, batch=4, batches=(4, 8), **SMALL)
    run = study.read(solve(study).tree)
    assert np.isnan(run.score.isel(step=slice(1, None))).all()


def test_a_batch_of_one_sequence_trains() -> None:
    study = Emergence.at("quick", steps=2, every=1, batch=1, batches=(1, 2), **SMALL)
    assert np.isfinite(study.read(solve(study).tree).score).all()


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
    with pytest.raises(AttnscopeError, match=r"contexts = \(64, 32\)"):
        Emergence(contexts=(64, 32))
    with pytest.raises(AttnscopeError, match="batch = None"):
        Emergence(batch=None)
    with pytest.raises(AttnscopeError, match="length = 4"):
        Emergence(contexts=(4, 8))
    with pytest.raises(AttnscopeError, match="words = 32 for a length of 64"):
        Emergence(words=32)
