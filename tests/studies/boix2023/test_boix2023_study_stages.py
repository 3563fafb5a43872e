"""The stages of the study: the numbers of its setting, its claims on one start, bad settings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope import AttnscopeError
from attnscope.claims import examine_all
from attnscope.experiment import solve
from attnscope.studies.boix2023 import StagesStudy
from attnscope.studies.boix2023.stages.claims import DESCENT
from attnscope.trajectory import Readings


@pytest.fixture(scope="module")
def study() -> StagesStudy:
    return StagesStudy(seeds=1)


@pytest.fixture(scope="module")
def run(study: StagesStudy) -> Readings:
    return study.read(solve(study).tree)


def test_the_greedy_stages_of_the_setting(study: StagesStudy) -> None:
    found = study.stages()
    np.testing.assert_allclose(found.times, [1.983, 2.146, 3.949, 5.045, 5.370], atol=6e-4)
    assert [study.entry_name(i) for i in found.entries] == ["VO1", "KQ1", "VO3", "KQ2", "VO5"]
    losses = [study.loss_at(stage.products) for stage in found.stages]
    np.testing.assert_allclose(losses, [1.8261, 0.5548, 0.3449, 0.1094, 0.0], atol=6e-5)
    forgetful = study.stages(remember=False).times
    np.testing.assert_allclose(forgetful[2:5] / found.times[2:] - 1, [0.28, 0.43, 0.94], atol=0.01)


def test_at_zero_scores_have_no_gradient(study: StagesStudy) -> None:
    slopes = study.gradient(np.zeros(12))
    assert np.all(slopes[:6] == 0)
    assert np.abs(slopes[6:]).argmax() == 0


def test_every_claim_holds_and_every_control_fails(study: StagesStudy, run: Readings) -> None:
    found = {finding.key: finding for finding in examine_all(study.claims(), run)}
    assert all(finding.control_fails for finding in found.values())
    assert {key for key, finding in found.items() if finding.verdict != "holds"} == set()
    assert found["times"].ours < 0.005


def test_runs_share_the_rescaled_time_and_gradient_descent_is_one_of_them(
    study: StagesStudy, run: Readings
) -> None:
    assert run.loss["time"].to_numpy()[-1] == study.end
    assert run.of(DESCENT).stats.steps.item() == study.points - 1
    model = study.build(DESCENT, 0).model
    small = study.build("α = 0.01", 0).model
    torch.testing.assert_close(model.left / 1e-16, small.left / 1e-2)


def test_figures_and_tables_have_every_stage(study: StagesStudy, run: Readings) -> None:
    stairs, late, full = study.figures(run)
    assert [panel.title for panel in late.panels][-1] == "stage 5: VO5"
    assert (len(stairs.panels), len(full.panels)) == (2, 2)
    (table,) = study.printed(run)
    assert [row[0] for row in table.rows] == ["1: VO1", "2: KQ1", "3: VO3", "4: KQ2", "5: VO5"]
    assert table.rows[3][-1] == pytest.approx(0.46, abs=1e-3)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"alphas": (1e-4,)}, "expected two sizes or more"),
        ({"alphas": (1e-8, 1e-4)}, "falling"),
        ({"alphas": (1e-4, 1e-200)}, "nearer to 0|expected"),
        ({"full_alphas": (1e-3, 1e-99)}, None),
        ({"loud": 1.0}, "expected a start below 1"),
        ({"lr": 0.1}, "without a learning rate"),
    ],
)
def test_bad_settings(settings: dict, sentence: str | None) -> None:
    if sentence is None:
        StagesStudy(**settings)
        return
    with pytest.raises(AttnscopeError, match=sentence):
        StagesStudy(**settings)
