"""``song2024.query_only`` on a small problem, from runs to verdicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.trajectory import select
from attnscope.studies.song2024._query_only_cases import (
    CASES,
    KERNELS,
    SATURATED,
    STARTS,
    STOP,
    UNIT,
    course,
    final_loss,
)
from attnscope.studies.song2024.query_only import QueryOnly

pytestmark = pytest.mark.xdist_group("song2024 query only")  # one fixture for all

SMALL = QueryOnly(seeds=2, epochs=500, points=16, sequences=3, length=3, width=6, head_width=4)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("query") / "run", workers=1)


def test_all_runs_are_complete_and_lower_the_loss(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    assert len(CASES) == len(STARTS) * len(KERNELS)
    for kernel in KERNELS:
        for start in STARTS:
            loss = course(done, "relative_loss", kernel, start)
            assert np.isfinite(loss).all()
            assert (loss[:, -1] <= loss[:, 0] * (1 + 1e-6)).all()


def test_a_run_that_ends_early_keeps_its_last_reading() -> None:
    values = np.array([[3.0, 2.0, np.nan], [3.0, 2.0, 1.0]])
    tree = xr.DataTree.from_dict(
        {
            "observables": xr.Dataset(
                {"relative_loss": (("run", "step"), values)},
                coords={"case": ("run", [f"softmax, {UNIT}"] * 2)},
            )
        }
    )
    assert final_loss(tree, "softmax", UNIT).tolist() == [2.0, 1.0]
    assert STOP < 1e-4


def test_only_queries_learn(done: xr.DataTree) -> None:
    problem = SMALL.build(f"gaussian, {UNIT}", 0)
    learns = [name for name, p in problem.model.named_parameters() if p.requires_grad]
    assert learns == ["W_Q"]
    gradient = select(done, "gradient", f"gaussian, {UNIT}").to_numpy()
    assert gradient.shape[-1] == 4
    assert (gradient[:, 0] > 0).all()


def test_softmax_cannot_leave_the_range_of_its_values(done: xr.DataTree) -> None:
    for start in STARTS:
        least = select(done, "least_loss", f"softmax, {start}", "theory").to_numpy()
        assert (final_loss(done, "softmax", start) >= least - 1e-9).all()
        assert np.isnan(select(done, "least_loss", f"gaussian, {start}", "theory")).all()
    assert (select(done, "least_loss", f"softmax, {UNIT}", "theory").to_numpy() > 0).any()


def test_a_saturated_start_has_no_gradient(done: xr.DataTree) -> None:
    usual = course(done, "jacobian", "softmax", UNIT)[:, 0]
    saturated = course(done, "jacobian", "softmax", SATURATED)[:, 0]
    assert (saturated < usual).all()


def test_claims_are_decided(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    assert found["out-of-range"].verdict == "holds"
    # How long the tail is, two seeds of a tiny problem cannot tell.
    for key in ("vanishing", "better-on-average", "out-of-range", "saturated-start"):
        assert found[key].control_fails, (key, found[key].control)


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    assert [figure.name for figure in SMALL.figures(done)] == ["outcomes", "courses", "anatomy"]
    outcomes, gradients = SMALL.tables(done)
    assert len(outcomes.rows) == len(gradients.rows) == len(CASES)
    for row in outcomes.rows:
        assert row[3] <= row[2] <= row[4]
        assert row[5] <= row[6]


def test_bad_input_gets_sentences() -> None:
    with pytest.raises(AttnscopeError, match="engine = 'descent'"):
        dataclasses.replace(SMALL, engine="descent")
    with pytest.raises(AttnscopeError, match="width = 0"):
        dataclasses.replace(SMALL, width=0)
