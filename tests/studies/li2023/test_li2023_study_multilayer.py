"""``li2023.multilayer`` on two small layers: from run to tables, and its claims by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.claims import examine
from attnscope.errors import AttnscopeError
from attnscope.studies.li2023 import _multilayer_claims as said
from attnscope.studies.li2023 import _multilayer_figures as drawn
from attnscope.studies.li2023.multilayer import DEEP, SHALLOW, TURN, Multilayer

pytestmark = pytest.mark.xdist_group("li2023 multilayer")

TINY: dict[str, Any] = {
    "seeds": 2,
    "epochs": 40,
    "points": 5,
    "topics": 4,
    "words": 3,
    "layers": 2,
    "heads": 2,
    "attention_dim": 4,
    "shortest": 12,
    "longest": 14,
    "batch": 8,
    "documents": 10,
    "adam": 0.03,
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Multilayer, xr.DataTree]:
    study = Multilayer(**TINY)
    return study, attnscope.run(study, tmp_path_factory.mktemp("multilayer") / "run", workers=1)


def test_readings_are_complete_and_the_missing_layer_is_empty(
    done: tuple[Multilayer, xr.DataTree],
) -> None:
    _, tree = done
    attention = tree["observables/attention"]
    assert attention.shape == (4, 5, 2, 2, 3)
    deep = attention["case"].to_numpy() == DEEP
    assert np.isfinite(attention.to_numpy()[deep]).all()
    assert np.isfinite(attention.to_numpy()[~deep][:, :, 0]).all()
    assert np.isnan(attention.to_numpy()[~deep][:, :, 1]).all()
    loss = tree["observables/loss"].to_numpy()
    assert (loss[:, -1] < loss[:, 0]).all()


def test_claims_are_decided_and_controls_without_training_fail(
    done: tuple[Multilayer, xr.DataTree],
) -> None:
    study, tree = done
    findings = {claim.key: examine(claim, tree) for claim in study.claims()}
    assert all(finding.verdict != "undecided" for finding in findings.values())
    for key in ("same-topic-deep", "topics-in-most-heads", "two-stage-every-layer"):
        assert findings[key].control_fails, key


def test_figures_and_table(done: tuple[Multilayer, xr.DataTree]) -> None:
    study, tree = done
    heads, over = study.figures(tree)
    (heat,) = heads.panels[0].marks
    assert heat.values.shape == (2, 4 * 3 - 1)  # type: ignore[union-attr]
    assert [panel.title for panel in over.panels][1:4] == [f"norm of {m}" for m in said.MATRICES]
    (table,) = study.tables(tree)
    assert [row[:2] for row in table.rows] == [(DEEP, 1), (DEEP, 2), (SHALLOW, 1)]


def test_turning_is_the_angle_to_ten_steps_before(done: tuple[Multilayer, xr.DataTree]) -> None:
    _, tree = done
    at, angle = drawn.turning(tree)
    assert at[0] == TURN
    assert at[-1] == 40
    assert angle.shape == (2, len(at), 2)
    values = tree["observables/value_matrix"]
    clock = values["time_turn"].to_numpy()
    late, early = (values.to_numpy()[2, np.flatnonzero(clock == t)[0], 1] for t in (40, 30))
    cosine = np.vdot(late, early) / (np.linalg.norm(late) * np.linalg.norm(early))
    assert angle[1, -1, 1] == pytest.approx((1 - cosine) / 2, rel=1e-3)


def test_a_single_layer_cannot_know_the_main_topic() -> None:
    study = Multilayer(**TINY)
    documents = study.task().sample(20, 0)
    factors = []
    for case in (SHALLOW, DEEP):
        model = study.model(case, 0)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
            factors.append(study._main_topic(documents, study.task().topic_of)(model).numpy())
    # Words have weights of their own in both; only a second layer weighs them by the document.
    np.testing.assert_allclose(factors[0][0], 1, rtol=1e-4)
    np.testing.assert_allclose(factors[1][0], 1, rtol=1e-4)
    assert (np.abs(np.log(factors[1][1])) > 0.01).all()


def test_growth_at_half_reads_one_norm_by_the_clock_of_another() -> None:
    norms = np.arange(5.0).reshape(1, 5, 1, 1) * np.ones((1, 1, 3, 1))
    norms[0, :, 0, 0] = [1, 1, 1.2, 2, 3]
    norms[0, :, 2, 0] = [1, 3, 6, 8, 9]
    # W^V is half-way at the third reading, where W^K has made a tenth of its way.
    assert said.growth_at_half(norms, 2, 0)[0, 0] == pytest.approx(0.1)
    assert said.growth_at_half(norms, 0, 2)[0, 0] == pytest.approx(7 / 8)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layers": 1}, "layers = 1: expected 2 or more"),
        ({"epochs": 12}, "epochs = 12: expected 20 or more"),
        ({"engine": "flow"}, "expected 'descent' with 1"),
        ({"adam": 0.0}, "expected a finite learning rate above 0"),
        ({"shortest": 9, "longest": 8}, "expected a number of positions"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        Multilayer(**fields)
