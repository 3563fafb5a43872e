"""``song2024.convergence`` on a small problem, from runs to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.song2024.convergence import Convergence
from attnscope.studies.song2024.convergence.claims import ABOVE, BELOW, CASES, DESCENT, KINDS
from attnscope.trajectory import final, initial

pytestmark = pytest.mark.xdist_group("song2024 convergence")  # one fixture for all

SMALL = Convergence().but(
    seeds=1,
    until=8.0,
    points=31,
    length=2,
    sequences=3,
    many_sequences=6,
    width=5,
    wide=24,
    head_width=4,
)
KERNELS = ("softmax", "gaussian")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("convergence") / "run", workers=1)


def test_cases_cover_both_kernels_both_sides_and_both_starts() -> None:
    assert SMALL.cases == tuple(CASES)
    assert set(CASES.values()) == {(kernel, kind) for kernel in KERNELS for kind in KINDS}
    assert len(CASES) == 8


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for name in ("relative_loss", "pl", "sigma_min", "feature_move", "moved"):
        assert np.isfinite(done[f"observables/{name}"]).all()
    assert (initial(SMALL.read(done).of(f"softmax, {ABOVE}").feature_move) == 0).all()


def test_descent_and_flow_of_a_seed_agree(done: xr.DataTree) -> None:
    loss = SMALL.read(done).relative_loss
    loss = loss.isel(step=loss["time"].to_numpy() < 1)
    for kernel in KERNELS:
        flow, descent = (loss.sel(case=f"{kernel}, {kind}") for kind in (ABOVE, DESCENT))
        assert descent.to_numpy() == pytest.approx(flow.to_numpy(), rel=0.15)


def test_below_the_threshold_nothing_is_certified_and_the_run_goes_on(done: xr.DataTree) -> None:
    for kernel in KERNELS:
        own = SMALL.read(done).of(f"{kernel}, {BELOW}")
        assert (own.theory.beta == 0).all()
        assert (own.theory.certified == 0).all()
        assert (final(own.relative_loss) < 0.1 * initial(own.relative_loss)).all()


def test_claims_hold_and_every_control_fails(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    # Whether a tiny problem is solved by then depends on its seed; the bounds do not.
    for key in ("rate", "printed-bound", "path-bound", "start-exists", "near-start", "value-alone"):
        assert found[key].verdict == "holds", (key, found[key].ours)
    for finding in found.values():
        assert finding.control_fails, (finding.key, finding.control)


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    assert [figure.name for figure in SMALL.figures(SMALL.read(done))] == ["losses", "constants"]
    certificates, alone = SMALL.tables(SMALL.read(done))
    assert [row[0] for row in certificates.rows] == list(CASES)
    # Below the threshold there is no constant to print.
    empty = [row[3] is None for row in certificates.rows]
    assert empty == [kind == BELOW for _, kind in CASES.values()]
    assert len(alone.rows) == 6


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sequences": 9}, "at or above sequences × length and below"),
        ({"many_sequences": 4}, "at or above sequences × length and below"),
        ({"engine": "descent"}, "engine = 'descent'"),
        ({"heads": 0}, "heads = 0"),
        ({"until": 0.015}, "expected a whole number of steps"),
        ({"lr": 0.1}, "a flow without a learning rate"),
    ],
)
def test_what_cannot_run_gets_a_sentence(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(AttnscopeError, match=sentence):
        SMALL.but(**changes)


def test_old_specs_are_read() -> None:
    old = {"engine": "flow", "lr": 0.02, "epochs": 1500, "correct": False, "points": 31}
    study = Convergence.from_json(old)
    assert (study.end, study.step, study.steps, study.points) == (30.0, 0.02, 1500, 31)
    assert Convergence.from_json(study.to_json()) == study
