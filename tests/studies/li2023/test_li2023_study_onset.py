"""``li2023.onset`` on a small task, from runs to verdicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Descent, Flow
from attnscope.errors import AttnscopeError
from attnscope.models import TopicObjective
from attnscope.report.figure import Line
from attnscope.studies.li2023._onset_model import UniformGradient, leading_part, near_zero
from attnscope.studies.li2023._onset_readings import case_name, measured, predicted
from attnscope.studies.li2023.onset import Onset
from attnscope.tasks import TopicDocuments

pytestmark = pytest.mark.xdist_group("li2023 onset")  # one fixture for all

SMALL = Onset(
    seeds=1,
    topics=4,
    words=3,
    tau=2,
    documents=60,
    length=60,
    epochs=1500,
    points=31,
    noises=(1e-2, 1e-4),
    loud=0.5,
    rates=(25.0,),
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(SMALL, tmp_path_factory.mktemp("onset") / "run", workers=1)


def test_one_uniform_run_predicts_every_other(done: xr.DataTree) -> None:
    assert done.attrs["status"] == f"finished: all {len(SMALL.runs())} runs are complete"
    for rate in (None, 25.0):
        for noise in SMALL.noises:
            case = case_name(rate, noise)
            found = measured(done, case)
            assert np.isfinite(found).all()
            assert predicted(done, case, "ahead") == pytest.approx(found, rel=0.03)


def test_smaller_noise_starts_later_and_a_loud_start_has_no_onset(done: xr.DataTree) -> None:
    late, early = (measured(done, case_name(None, noise)) for noise in (1e-4, 1e-2))
    assert (late > early).all()
    assert np.isnan(measured(done, case_name(None, SMALL.loud))).all()
    assert np.isnan(predicted(done, case_name(None, SMALL.loud), "closed")).all()


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


def test_figures_and_tables_are_drawn(done: xr.DataTree) -> None:
    assert [figure.name for figure in SMALL.figures(done)] == [
        "norms-over-time",
        "predicted-measured",
        "driver",
    ]
    curves = SMALL.figures(done)[0].panels[0].marks
    theory = [mark for mark in curves if isinstance(mark, Line) and mark.theory]
    assert len(theory) == len(SMALL.noises)
    onset, seeds = SMALL.tables(done)
    assert len(onset.rows) == len(SMALL.settings())
    assert len(seeds.rows) == len(SMALL.noises) * SMALL.seeds
    mean = measured(done, case_name(25.0, 1e-2)).mean()
    (row,) = [row for row in onset.rows if row[:2] == ("25", 1e-2)]
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


def test_readings_of_a_diagonal_gradient() -> None:
    u, w = np.eye(3)[[0, 1]], np.eye(3)[[2, 0]]
    part = leading_part(np.array([2.0, 3.0]), u, w)
    assert part.shape == (2, 3, 3)
    assert part[0, 0, 2] == 2
    assert part[1, 1, 0] == 3
    assert np.abs(part).sum() == 5


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
    assert isinstance(SMALL.make_engine("uniform"), Flow)
    engine = SMALL.make_engine(case_name(25.0, 1e-4))
    assert isinstance(engine, Descent)
    assert engine.lr == 25


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rates": (30.0,)}, "expected rates that divide 50; 30 does not"),
        ({"noises": ()}, "expected one or more numbers above 0"),
        ({"noises": (1e-2, 0.0)}, "expected one or more numbers above 0"),
        ({"loud": 1e-2}, "expected a noise that is not in noises"),
        ({"engine": "descent"}, "expected 'flow' and False"),
        ({"rtol": 0.0}, "rtol = 0.0: expected a number above 0"),
    ],
)
def test_bad_input_gets_a_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        dataclasses.replace(SMALL, **change)  # type: ignore[arg-type]
