"""``song2024.query_only`` on a small problem, from runs to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.song2024.query_only import (
    CASES,
    KERNELS,
    SATURATED,
    STARTS,
    STOP,
    UNIT,
    QueryOnly,
    curve,
    final_loss,
)
from attnscope.trajectory import Readings, initial

pytestmark = pytest.mark.xdist_group("song2024 query only")  # one fixture for all

SMALL = QueryOnly().but(seeds=2, until=5.0, points=16, sequences=3, length=3, width=6, head_width=4)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("query") / "run", workers=1)


@pytest.fixture(scope="module")
def read(done: xr.DataTree) -> Readings:
    return SMALL.read(done)


def test_all_runs_are_complete_and_lower_the_loss(read: Readings) -> None:
    assert read.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    assert len(CASES) == len(STARTS) * len(KERNELS)
    for kernel in KERNELS:
        for start in STARTS:
            loss = curve(read, "relative_loss", kernel, start)
            assert np.isfinite(loss).all()
            assert (loss[:, -1] <= loss[:, 0] * (1 + 1e-6)).all()


def test_a_run_that_ends_early_keeps_its_last_reading() -> None:
    values = np.array([[3.0, 2.0, np.nan], [3.0, 2.0, 1.0]])
    runs = {"case": ("run", [f"softmax, {UNIT}"] * 2), "seed": ("run", [0, 1])}
    curves = xr.Dataset({"relative_loss": (("run", "step"), values)}, coords=runs)
    groups = {"observables": curves, "stats": xr.Dataset(coords=runs)}
    tree = xr.DataTree.from_dict(groups)
    assert final_loss(Readings(tree), "softmax", UNIT).to_numpy().tolist() == [2.0, 1.0]
    assert STOP < 1e-4


def test_only_queries_learn(read: Readings) -> None:
    problem = SMALL.build(f"gaussian, {UNIT}", 0)
    learns = [name for name, p in problem.model.named_parameters() if p.requires_grad]
    assert learns == ["W_Q"]
    gradient = read.of(f"gaussian, {UNIT}").gradient
    assert gradient.sizes["matrix"] == 4
    assert (initial(gradient) > 0).all()


def test_softmax_cannot_leave_the_range_of_its_values(read: Readings) -> None:
    for start in STARTS:
        least = read.of(f"softmax, {start}").theory.least_loss
        assert (final_loss(read, "softmax", start) >= least - 1e-9).all()
        assert np.isnan(read.of(f"gaussian, {start}").theory.least_loss).all()
    assert (read.of(f"softmax, {UNIT}").theory.least_loss > 0).any()


def test_a_saturated_start_has_no_gradient(read: Readings) -> None:
    usual, saturated = (
        initial(curve(read, "jacobian", "softmax", start)) for start in (UNIT, SATURATED)
    )
    assert (saturated < usual).all()


def test_claims_are_decided(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    assert found["out-of-range"].verdict == "holds"
    # How long the tail is, two seeds of a tiny problem cannot tell.
    for key in ("vanishing", "better-on-average", "out-of-range", "saturated-start"):
        assert found[key].control_fails, (key, found[key].control)


def test_figures_and_tables_are_drawn(read: Readings) -> None:
    assert [figure.name for figure in SMALL.figures(read)] == ["outcomes", "courses", "anatomy"]
    outcomes, gradients = SMALL.tables(read)
    assert len(outcomes.rows) == len(gradients.rows) == len(CASES)
    for row in outcomes.rows:
        assert row[3] <= row[2] <= row[4]
        assert row[5] <= row[6]


def test_bad_input_gets_sentences() -> None:
    with pytest.raises(AttnscopeError, match="engine = 'descent'"):
        SMALL.but(engine="descent")
    with pytest.raises(AttnscopeError, match="width = 0"):
        SMALL.but(width=0)


def test_old_specs_are_read() -> None:
    old = {"engine": "flow", "lr": 0.01, "epochs": 500, "correct": False, "points": 16}
    assert QueryOnly.from_json(old) == QueryOnly().but(until=5.0, points=16)
