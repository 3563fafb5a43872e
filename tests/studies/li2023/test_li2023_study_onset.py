"""``li2023.onset`` on a small task, from runs to verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective
from attnscope.report.figure import Line
from attnscope.studies.li2023.onset import OnsetStudy
from attnscope.studies.li2023.onset.readings import case_name, onset, too_coarse
from attnscope.tasks import TopicDocuments
from attnscope.theory import li2023
from attnscope.theory.li2023.near_uniform import UniformGradient, near_zero
from attnscope.trajectory import Readings

pytestmark = pytest.mark.xdist_group("li2023 onset")  # one fixture for all

SMALL = OnsetStudy().but(
    seeds=1,
    topics=4,
    words=3,
    tau=2,
    documents=60,
    length=60,
    until=1500.0,
    points=31,
    noises=(1e-2, 1e-4),
    loud=0.5,
    rates=(25.0,),
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("onset") / "run", workers=1)


@pytest.fixture(scope="module")
def read(done: xr.DataTree) -> Readings:
    return SMALL.read(done)


def test_one_uniform_run_predicts_every_other(done: xr.DataTree, read: Readings) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    cases = [case_name(rate, noise) for rate in (None, 25.0) for noise in SMALL.noises]
    found = onset(read.score_norm.sel(case=cases))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(read.theory.onset_ahead.sel(case=cases), found, rtol=0.03)


def test_smaller_noise_starts_later_and_a_loud_start_has_no_onset(read: Readings) -> None:
    found = onset(read.score_norm)
    late, early, loud = (found.sel(case=case_name(None, n)) for n in (1e-4, 1e-2, SMALL.loud))
    assert (late > early).all()
    assert np.isnan(loud).all()
    assert np.isnan(read.of(case_name(None, SMALL.loud)).theory.onset_closed).all()


def test_gradients_are_kept_of_the_uniform_run_alone(done: xr.DataTree) -> None:
    sigma = done["observables/sigma"]
    uniform = sigma["case"].to_numpy() == "uniform"
    assert np.isfinite(sigma.to_numpy()[uniform]).all()
    assert np.isnan(sigma.to_numpy()[~uniform]).all()


def test_claims_are_decided_and_every_control_fails(done: xr.DataTree) -> None:
    found = {finding.key: finding for finding in attnscope.findings(done)}
    assert list(found) == [claim.key for claim in SMALL.claims()]
    undecided = [key for key, finding in found.items() if finding.verdict == "undecided"]
    assert undecided == []
    for key in ("ahead-0.01", "ahead-0.0001", "loud"):
        assert found[key].verdict == "holds", (key, found[key].ours)
    passing = {key: f.control for key, f in found.items() if not f.control_fails}
    assert passing == {}


def test_figures_and_tables_are_drawn(read: Readings) -> None:
    assert [figure.name for figure in SMALL.figures(read)] == [
        "norms-over-time",
        "predicted-measured",
        "driver",
    ]
    curves = SMALL.figures(read)[0].panels[0].marks
    theory = [mark for mark in curves if isinstance(mark, Line) and mark.theory]
    assert len(theory) == len(SMALL.noises)
    means, seeds = SMALL.tables(read)
    assert len(means.rows) == len(SMALL.settings())
    assert len(seeds.rows) == len(SMALL.noises) * SMALL.seeds
    mean = float(onset(read.of(case_name(25.0, 1e-2)).score_norm).mean())
    (row,) = [row for row in means.rows if row[:2] == ("25", 1e-2)]
    assert row[2] == pytest.approx(mean)


def test_the_gradient_drives_keys_and_queries_near_zero() -> None:
    """∂L/∂W^K = W^Q Gᵀ and ∂L/∂W^Q = W^K G to first order, by autograd through the model."""
    task = TopicDocuments(topics=3, words=2, tau=2, length=20)
    documents = task.sample(30, 0)
    model = near_zero(task.vocabulary, "learned", 1e-6, 0.5, 0, torch.float64)
    gradient = UniformGradient(documents, torch.float64)(model)
    TopicObjective(documents)(model).backward()
    assert model.W_K is not None
    assert model.W_Q is not None
    with torch.no_grad():
        expected = (model.W_Q @ gradient.T, model.W_K @ gradient)
    for matrix, value in zip((model.W_K, model.W_Q), expected, strict=True):
        assert matrix.grad is not None
        assert torch.allclose(matrix.grad, value, rtol=1e-8, atol=1e-16)


def test_record_points_too_far_apart_are_said_and_not_judged(
    read: Readings, done: xr.DataTree
) -> None:
    assert not too_coarse(read.score_norm)
    far = read.score_norm.isel(step=slice(None, None, 5))
    assert too_coarse(far)
    assert np.isnan(onset(far)).any()
    found = li2023.measured_onset(far["time"].to_numpy(), far.isel(case=-1, seed=0).to_numpy())
    assert found.coarse
    assert "too far apart" in str(found)


def test_reasons_speak_of_this_width() -> None:
    said = {claim.key: claim.reason for claim in SMALL.claims()}
    assert "√(2/d_a) = 0.39 over seeds at d_a = 13" in said["expected-0.01"]
    assert not any("0.14" in reason for reason in said.values())


def test_models_of_a_seed_differ_by_the_noise_alone() -> None:
    one, tenth, none = (
        near_zero(5, kind, noise, 0.1, 3)  # type: ignore[arg-type]
        for kind, noise in (("learned", 1.0), ("learned", 0.1), ("uniform", 1.0))
    )
    assert one.W_V is not None
    assert torch.equal(one.W_V, tenth.W_V)  # type: ignore[arg-type]
    assert torch.equal(one.W_V, none.W_V)  # type: ignore[arg-type]
    assert torch.allclose(one.W_K / 10, tenth.W_K)  # type: ignore[operator, arg-type]
    assert one.W_V.std() < 0.2


def test_cases_have_their_own_engines() -> None:
    flow = SMALL.engine("uniform", 0)
    assert isinstance(flow, Flow)
    assert flow.atol == 1e-8
    fine = SMALL.but(noises=(1e-6,)).engine("uniform", 0)
    assert isinstance(fine, Flow)
    assert fine.atol == pytest.approx(1e-9)
    descent = SMALL.engine(case_name(25.0, 1e-4), 0)
    assert isinstance(descent, Descent)
    assert descent.lr == 25


def test_a_spec_in_epochs_of_an_older_version_is_understood() -> None:
    old = {"engine": "flow", "lr": 2.0, "epochs": 750, "correct": False, "rtol": 1e-6}
    study = OnsetStudy.from_json({"rates": [25.0], "points": 31, **old})
    assert study.training == Flow(until=1500.0, rtol=1e-6, atol=1e-9)
    assert OnsetStudy.from_json(study.to_json()) == study


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rates": (30.0,)}, "expected rates that divide 50; 30 does not"),
        ({"noises": ()}, "expected one or more numbers above 0"),
        ({"noises": (1e-2, 0.0)}, "expected each to be a finite number above 0"),
        ({"loud": 1e-2}, "expected a noise that is not in noises"),
        ({"engine": "descent"}, "expected 'flow'"),
        ({"lr": 1.0}, "expected a flow without a learning rate"),
        ({"rtol": 0.0}, "rtol = 0.0: expected a finite number above 0"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, Any], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        SMALL.but(**change)
