"""``li2023.multilayer`` on two small layers: from run to tables, and its claims by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import attnscope
from attnscope.engines import Adam
from attnscope.errors import AttnscopeError
from attnscope.studies.li2023.multilayer import Multilayer
from attnscope.studies.li2023.multilayer.claims import DEEP, MATRICES, SHALLOW, growth_at_half
from attnscope.studies.li2023.multilayer.figures import TURN, turning
from attnscope.trajectory import Readings

pytestmark = pytest.mark.xdist_group("li2023 multilayer")

TINY = Multilayer().but(
    seeds=2,
    steps=40,
    points=5,
    topics=4,
    words=3,
    layers=2,
    heads=2,
    attention_dim=4,
    shortest=12,
    longest=14,
    batch=8,
    documents=10,
    rate=0.03,
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    return attnscope.run(TINY, tmp_path_factory.mktemp("multilayer") / "run", workers=1)


@pytest.fixture(scope="module")
def read(tree: xr.DataTree) -> Readings:
    return TINY.read(tree)


def test_readings_are_complete_and_the_missing_layer_is_empty(read: Readings) -> None:
    deep, shallow = (read.of(case).attention for case in (DEEP, SHALLOW))
    assert deep.shape == shallow.shape == (2, 5, 2, 2, 3)
    assert np.isfinite(deep).all()
    assert np.isfinite(shallow.isel(layer=0)).all()
    assert np.isnan(shallow.isel(layer=1)).all()
    assert (read.loss.isel(step=-1) < read.loss.isel(step=0)).all()


def test_claims_are_decided_and_controls_without_training_fail(tree: xr.DataTree) -> None:
    findings = {finding.key: finding for finding in attnscope.findings(tree)}
    assert all(finding.verdict != "undecided" for finding in findings.values())
    for key in ("same-topic-deep", "topics-in-most-heads", "two-stage-every-layer"):
        assert findings[key].control_fails, key


def test_figures_and_table(read: Readings) -> None:
    heads, over = TINY.figures(read)
    (heat,) = heads.panels[0].marks
    assert heat.values.shape == (2, 4 * 3 - 1)  # type: ignore[union-attr]
    assert [panel.title for panel in over.panels][1:4] == [f"norm of {m}" for m in MATRICES]
    (table,) = TINY.tables(read)
    assert [row[:2] for row in table.rows] == [(DEEP, 1), (DEEP, 2), (SHALLOW, 1)]


def test_turning_is_the_angle_to_ten_steps_before(read: Readings) -> None:
    angle = turning(read)
    assert angle["turn"][0] == TURN
    assert angle["turn"][-1] == 40
    assert angle.dims == ("seed", "turn", "layer")
    values = read.of(DEEP).value_matrix.sel(seed=1).isel(layer=1)
    late, early = (values.sel(turn=t).to_numpy() for t in (40, 30))
    cosine = np.vdot(late, early) / (np.linalg.norm(late) * np.linalg.norm(early))
    last = angle.sel(seed=1, turn=40).isel(layer=1)
    assert float(last) == pytest.approx((1 - cosine) / 2, rel=1e-3)


def test_a_single_layer_cannot_know_the_main_topic() -> None:
    documents = TINY.task().sample(20, 0)
    factors = []
    for case in (SHALLOW, DEEP):
        model = TINY.model(case, 0)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
            factors.append(TINY.main_topic(documents)(model).numpy())
    # Words have weights of their own in both; only a second layer weighs them by the document.
    np.testing.assert_allclose(factors[0][0], 1, rtol=1e-4)
    np.testing.assert_allclose(factors[1][0], 1, rtol=1e-4)
    assert (np.abs(np.log(factors[1][1])) > 0.01).all()


def test_growth_at_half_reads_one_norm_by_the_clock_of_another() -> None:
    norms = xr.DataArray(
        [[[1.0, 0, 1], [1, 1, 3], [1.2, 2, 6], [2, 3, 8], [3, 4, 9]]],
        coords={"step": range(5), "matrix": list(MATRICES)},
        dims=("seed", "step", "matrix"),
    )
    # W^V is half-way at the third reading, where W^K has made a tenth of its way.
    assert growth_at_half(norms, "W^V", "W^K").item() == pytest.approx(0.1)
    assert growth_at_half(norms, "W^K", "W^V").item() == pytest.approx(7 / 8)


def test_a_spec_of_an_older_version_is_understood() -> None:
    old = {"engine": "descent", "lr": 1.0, "epochs": 300, "correct": False, "adam": 0.02}
    study = Multilayer.from_json({"layers": 3, "batch": 10, **old})
    assert study.training == Adam(rate=0.02, steps=300, batch=10)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"layers": 1}, "layers = 1: expected 2 or more"),
        ({"steps": 12}, "steps = 12: expected 20 or more"),
        ({"engine": "flow"}, "expected 'adam'"),
        ({"rate": 0.0}, "rate = 0.0: expected a finite number above 0"),
        ({"shortest": 9, "longest": 8}, "expected a number of positions"),
    ],
)
def test_bad_fields_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(AttnscopeError, match=words):
        Multilayer().but(**fields)
