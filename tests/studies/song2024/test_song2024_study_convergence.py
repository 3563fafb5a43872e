"""``song2024.convergence`` on a small problem, from runs to verdicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.trajectory import select
from attnscope.studies.song2024._convergence_cases import (
    BELOW,
    CERTIFIED,
    FLOWS,
    SETTINGS,
    USUAL,
)
from attnscope.studies.song2024.convergence import Convergence

pytestmark = pytest.mark.xdist_group("song2024 convergence")  # one fixture for all

SMALL = Convergence(
    seeds=1,
    epochs=800,
    points=31,
    length=2,
    sequences=3,
    many_sequences=6,
    width=5,
    wide=24,
    head_width=4,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("convergence") / "run", workers=1)


def test_cases_cover_both_kernels_both_sides_and_both_starts() -> None:
    assert len(SETTINGS) == 8
    assert set(SETTINGS) == {*USUAL, *BELOW, *CERTIFIED}
    assert len(FLOWS) == len(BELOW) == len(CERTIFIED) == 2


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for name in ("relative_loss", "pl", "sigma_min", "feature_move", "moved"):
        assert np.isfinite(done[f"observables/{name}"]).all()
    assert float(np.abs(select(done, "feature_move", FLOWS[0])[0, 0])) == 0


def test_descent_and_flow_of_a_seed_agree(done: xr.DataTree) -> None:
    for case in FLOWS:
        flow = select(done, "relative_loss", case).to_numpy()
        descent = select(done, "relative_loss", f"{case}, descent").to_numpy()
        early = done["observables/time"].to_numpy() < 1
        assert descent[:, early] == pytest.approx(flow[:, early], rel=0.15)


def test_below_the_threshold_nothing_is_certified_and_the_run_goes_on(done: xr.DataTree) -> None:
    for case in BELOW:
        assert float(select(done, "beta", case, "theory")[0]) == 0
        assert float(select(done, "certified", case, "theory").max()) == 0
        loss = select(done, "relative_loss", case).to_numpy()
        assert loss[0, -1] < 0.1 * loss[0, 0]


def test_claims_hold_and_every_control_fails(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    # Whether a tiny problem is solved by then depends on its seed; the bounds do not.
    for key in ("rate", "printed-bound", "path-bound", "start-exists", "near-start", "value-alone"):
        assert found[key].verdict == "holds", (key, found[key].ours)
    for finding in found.values():
        assert finding.control_fails, (finding.key, finding.control)


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    assert [figure.name for figure in SMALL.figures(done)] == ["losses", "constants"]
    certificates, alone = SMALL.tables(done)
    assert [row[0] for row in certificates.rows] == list(SETTINGS)
    # Below the threshold there is no constant to print.
    assert [row[3] is None for row in certificates.rows] == [case in BELOW for case in SETTINGS]
    assert len(alone.rows) == 6


def test_sizes_on_the_wrong_side_get_sentences() -> None:
    with pytest.raises(AttnscopeError, match="at or above sequences × length and below"):
        dataclasses.replace(SMALL, sequences=9)
    with pytest.raises(AttnscopeError, match="at or above sequences × length and below"):
        dataclasses.replace(SMALL, many_sequences=4)
    with pytest.raises(AttnscopeError, match="engine = 'descent'"):
        dataclasses.replace(SMALL, engine="descent")
    with pytest.raises(AttnscopeError, match="heads = 0"):
        dataclasses.replace(SMALL, heads=0)
