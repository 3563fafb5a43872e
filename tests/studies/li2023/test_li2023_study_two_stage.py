"""``li2023.two_stage`` on a small task, from runs to verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Adam, Sgd, Steps
from attnscope.errors import AttnscopeError
from attnscope.studies.li2023.onset.readings import onset
from attnscope.studies.li2023.two_stage import TwoStage
from attnscope.studies.li2023.two_stage.claims import lag
from attnscope.studies.li2023.two_stage.settings import (
    ADAM,
    SETTINGS,
    SLOW,
    TWO_STAGES,
    UNIFORM,
    ZERO,
    reaches,
)
from attnscope.trajectory import Readings

pytestmark = pytest.mark.xdist_group("li2023 two stage")  # one fixture for all

SMALL = TwoStage(
    seeds=1,
    topics=4,
    words=3,
    length=40,
    training=Steps(steps=100, batch=8),
    points=26,
    held_out=40,
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("two") / "run", workers=1)


def test_all_runs_are_complete(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for name in ("loss", "norm", "change", "score_norm"):
        assert np.isfinite(done[f"observables/{name}"]).all()


def test_from_exactly_zero_attention_never_moves(done: xr.DataTree) -> None:
    run = SMALL.read(done)
    assert float(np.abs(run.of(ZERO).change.sel(matrix=["K", "Q"])).max()) == 0
    frozen, found = (run.of(case).change.sel(matrix="V").to_numpy() for case in (UNIFORM, ZERO))
    assert found == pytest.approx(frozen, rel=1e-4)


def test_prediction_scales_with_the_learning_rate(done: xr.DataTree) -> None:
    run = SMALL.read(done)
    ahead = run.theory.onset_ahead
    fast, slow = (ahead.sel(case=case).to_numpy() for case in (TWO_STAGES, SLOW))
    assert slow == pytest.approx(5 * fast, rel=0.05)
    for case, setting in SETTINGS.items():
        assert np.isnan(ahead.sel(case=case)).all() == (not setting.source), case
    assert (SMALL.predicted_onset(run, TWO_STAGES, 0.9) > fast).all()


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
    names = [figure.name for figure in SMALL.figures(SMALL.read(done))]
    assert names == ["fig4-norms", "predicted-onset", "noise"]
    starts, onsets = SMALL.tables(SMALL.read(done))
    assert [row[0] for row in starts.rows] == list(SETTINGS)
    assert [row[0] for row in onsets.rows] == [
        case for case, setting in SETTINGS.items() if not setting.uniform
    ]


def fake(change: np.ndarray, norms: np.ndarray) -> Readings:
    """Return a trajectory of one run of Adam with given changes of W^K, W^Q, W^V."""
    runs = {"case": ("run", [ADAM]), "seed": ("run", [0])}
    data = xr.Dataset(
        {"change": (("run", "step", "matrix"), change), "score_norm": (("run", "step"), norms)},
        coords={"step": [0, 10, 20], "time": ("step", [0.0, 10.0, 20.0]), **runs},
    )
    stats = xr.Dataset(coords=runs)
    return SMALL.read(xr.DataTree.from_dict({"/observables": data, "/stats": stats}))


def test_starts_are_interpolated() -> None:
    change = np.array([[[0.0, 0.0, 0.0], [1.0, 0.5, 5.0], [20.0, 20.0, 10.0]]])
    run = fake(change, np.array([[1e-4, 1e-2, 1e2]]))
    first = 10 + 10 * (2 - 1) / 19
    starts = reaches(run.of(ADAM))
    assert starts.sel(matrix="K").to_numpy() == pytest.approx([first])
    assert starts.sel(matrix="V").to_numpy() == pytest.approx([2.0])
    assert lag(run, ADAM).to_numpy() == pytest.approx([first / 2])
    # Three record points say that there was an onset, and hardly when.
    assert np.isnan(onset(run.of(ADAM).score_norm)).all()


def test_a_matrix_that_never_moves_has_no_start() -> None:
    run = fake(np.zeros((1, 3, 3)), np.zeros((1, 3)))
    assert np.isnan(reaches(run.of(ADAM))).all()
    assert np.isnan(onset(run.of(ADAM).score_norm)).all()


def test_cases_of_a_seed_see_the_same_documents() -> None:
    one, other = (SMALL.build(case, 1) for case in (TWO_STAGES, ADAM))
    assert (one.seed, one.rows) == (other.seed, other.rows) == (1, 8 * 101)
    rows = torch.arange(4)
    batches = [problem.loss.batch(rows) for problem in (one, other)]  # type: ignore[attr-defined]
    assert torch.equal(batches[0].visible, batches[1].visible)


def test_every_case_has_its_own_optimizer_and_rate() -> None:
    assert SMALL.engine(SLOW, 0) == Sgd(rate=1, steps=100, batch=8)
    assert SMALL.engine(ADAM, 0) == Adam(rate=0.01, steps=100, batch=8)


def test_a_spec_of_an_older_run_is_understood() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 100, "correct": False, "batch": 8}
    study = TwoStage.from_json({**old, "points": 26})
    assert study == TwoStage(training=Steps(steps=100, batch=8), points=26)
    assert TwoStage.from_json(study.to_json()) == study


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"points": 32}, "expected points a whole number of steps apart"),
        ({"engine": "flow"}, "engine = 'flow': expected 'steps'"),
        ({"rate": 0.5}, "has no field 'rate'"),
        ({"batch": 0}, "batch = 0: expected 1 or more"),
        ({"held_out": 0}, "held_out = 0: expected 1 or more"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)
