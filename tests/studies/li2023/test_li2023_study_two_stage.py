"""``li2023.two_stage`` on a small task, from runs to verdicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.studies.li2023._two_stage_readings import lag, onset, predicted, reaches
from attnscope.studies.li2023._two_stage_settings import (
    ADAM,
    KEY,
    SETTINGS,
    SLOW,
    TWO_STAGES,
    UNIFORM,
    ZERO,
)
from attnscope.studies.li2023.two_stage import TwoStage
from attnscope.trajectory import select

pytestmark = pytest.mark.xdist_group("li2023 two stage")  # one fixture for all

SMALL = TwoStage(seeds=1, topics=4, words=3, length=40, batch=8, epochs=100, points=26, held_out=40)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("two") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for name in ("loss", "norm", "change", "score_norm"):
        assert np.isfinite(done[f"observables/{name}"]).all()


def test_from_exactly_zero_attention_never_moves(done: xr.DataTree) -> None:
    assert float(np.abs(select(done, "change", ZERO).isel(matrix=[0, 1])).max()) == 0
    frozen = select(done, "change", UNIFORM).isel(matrix=2).to_numpy()
    assert select(done, "change", ZERO).isel(matrix=2).to_numpy() == pytest.approx(frozen, rel=1e-4)


def test_prediction_scales_with_the_learning_rate(done: xr.DataTree) -> None:
    fast, slow = predicted(done, TWO_STAGES), predicted(done, SLOW)
    assert slow == pytest.approx(5 * fast, rel=0.05)
    for case, setting in SETTINGS.items():
        assert np.isnan(predicted(done, case)).all() == (not setting.source), case


def test_claims_are_examined(done: xr.DataTree) -> None:
    found = attnscope.findings(done)
    assert [finding.key for finding in found] == [claim.key for claim in SMALL.claims()]
    verdicts = {finding.key: finding for finding in found}
    # Those that speak of the size of the paper's task, such as flat values, are not decided here.
    for key in ("two-stages", "as-if-uniform", "slow", "still", "zero-start", "adam-0.01"):
        assert verdicts[key].verdict == "holds", (key, verdicts[key].ours)
        assert verdicts[key].control_fails, (key, verdicts[key].control)
    for key in ("adam-noise", "adam-steps"):
        assert verdicts[key].control_fails, (key, verdicts[key].control)
    assert all(finding.seeds == SMALL.seeds for finding in found)


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    names = [figure.name for figure in SMALL.figures(done)]
    assert names == ["fig4-norms", "predicted-onset", "noise"]
    starts, onsets = SMALL.tables(done)
    assert [row[0] for row in starts.rows] == list(SETTINGS)
    assert [row[0] for row in onsets.rows] == [
        case for case, setting in SETTINGS.items() if setting.attention == "learned"
    ]


def fake(change: np.ndarray, norms: np.ndarray) -> xr.DataTree:
    """Return a trajectory of one run of Adam with given changes of W^K, W^Q, W^V."""
    data = xr.Dataset(
        {"change": (("run", "step", "matrix"), change), "score_norm": (("run", "step"), norms)},
        coords={"time": ("step", np.array([0.0, 10.0, 20.0])), "case": ("run", [ADAM])},
    )
    return xr.DataTree.from_dict({"/observables": data})


def test_starts_are_interpolated() -> None:
    change = np.array([[[0.0, 0.0, 0.0], [1.0, 0.5, 5.0], [20.0, 20.0, 10.0]]])
    tree = fake(change, np.array([[1e-4, 1e-2, 1e2]]))
    first = 10 + 10 * (2 - 1) / 19
    assert reaches(tree, ADAM, KEY) == pytest.approx([first])
    assert reaches(tree, ADAM, 2) == pytest.approx([2.0])
    assert lag(tree, ADAM) == pytest.approx([first / 2])
    assert onset(tree, ADAM) == pytest.approx([15.0])


def test_a_matrix_that_never_moves_has_no_start() -> None:
    tree = fake(np.zeros((1, 3, 3)), np.zeros((1, 3)))
    assert np.isnan(reaches(tree, ADAM, KEY)).all()
    assert np.isnan(onset(tree, ADAM)).all()


def test_cases_of_a_seed_see_the_same_documents() -> None:
    one, other = (SMALL.make_engine(case, 1) for case in (TWO_STAGES, ADAM))
    assert (one.seed, one.samples) == (other.seed, other.samples)
    rows = torch.arange(4)
    batches = [SMALL.build(case, 1).loss.batch(rows) for case in (TWO_STAGES, ADAM)]  # type: ignore[attr-defined]
    assert torch.equal(batches[0].visible, batches[1].visible)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": 32}, "expected points a whole number of steps apart"),
        ({"engine": "flow"}, "time counts steps"),
        ({"lr": 0.5}, "time counts steps"),
        ({"batch": 0}, "batch = 0: expected 1 or more"),
        ({"held_out": 0}, "held_out = 0: expected 1 or more"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
