"""Phase diagrams: what is drawn, where the criterion is met, where theory puts the boundary."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sweep_toys import Hill

import attnscope
from attnscope.claims.claim import Criterion
from attnscope.errors import AttnscopeError
from attnscope.report import Band, Dots, Heat, Line, Rule
from attnscope.sweeps.diagram import diagrams, read_criterion
from attnscope.sweeps.report import edges_of, figures_of, page_of, summary_table, write_report


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    over = {"a": [0.0, 0.2, 0.4, 0.6], "b": [0.0, 0.3, 0.6]}
    return attnscope.sweep(Hill(), over, tmp_path_factory.mktemp("two") / "s", workers=1)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    out = tmp_path_factory.mktemp("one") / "s"
    return attnscope.sweep(Hill(noise=0.01), {"a": [0.0, 0.3, 0.7]}, out, workers=1)


def test_a_map_has_statistic_verdicts_criterion_and_the_boundary_of_theory(
    two: xr.DataTree,
) -> None:
    (diagram,) = diagrams(two, Hill())
    assert diagram.names == ("a", "b")
    assert diagram.values.shape == (3, 4)
    assert diagram.verdicts[:, 0].tolist() == ["holds", "holds", "holds"]
    assert diagram.verdicts[:, 3].tolist() == ["fails", "fails", "fails"]
    for x, y, name in diagram.theory:
        assert name == "a + b² = ½"
        np.testing.assert_allclose(x + y**2, 0.5, atol=1e-3)
    (figure,) = figures_of(two, Hill())
    marks = figure.panels[0].marks
    assert isinstance(marks[0], Heat)
    assert [mark.label for mark in marks if isinstance(mark, Dots)] == ["holds", "fails"]
    criterion = next(m for m in marks if isinstance(m, Line) and m.label == "criterion < 0.5")
    np.testing.assert_allclose(criterion.x + criterion.y**2, 0.5, atol=0.03)
    assert any(isinstance(mark, Line) and mark.theory for mark in marks)
    assert "The hill is low. It holds where height is < 0.5." in figure.caption


def test_a_theory_that_takes_long_is_not_waited_for(
    two: xr.DataTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnscope.sweeps.diagram.PATIENCE", -1.0)
    (diagram,) = diagrams(two, Hill())
    assert not diagram.theory


def test_a_curve_has_its_band_and_where_it_crosses(one: xr.DataTree) -> None:
    (diagram,) = diagrams(one, Hill())
    (at,) = diagram.crossings()
    assert at == pytest.approx(0.5, abs=0.02)
    assert diagram.turns() == [(0.3, 0.7)]
    (figure,) = figures_of(one, Hill())
    marks = figure.panels[0].marks
    assert isinstance(marks[0], Band)
    rules = [(mark.label, mark.vertical) for mark in marks if isinstance(mark, Rule)]
    assert ("criterion < 0.5", False) in rules
    assert ("a + b² = ½", True) in rules
    assert any(
        label.startswith("crosses at 0.5") or "crosses at 0.4" in label for label, _ in rules
    )
    assert summary_table(one).rows[0][-1] == "0.3 and 0.7"


def test_the_report_is_one_file_with_tables_and_images(two: xr.DataTree, tmp_path: Path) -> None:
    path = write_report(two, tmp_path / "report", figures=["png"], study=Hill())
    text = path.read_text(encoding="utf-8")
    assert "Hill over a × b" in text
    assert (tmp_path / "report" / "figures" / "phase-low.png").stat().st_size > 5000
    rows = (tmp_path / "report" / "tables" / "points.csv").read_text().splitlines()
    assert len(rows) == 13
    assert page_of(two).figures


def test_a_third_field_and_one_of_words_tell_panels_apart(tmp_path: Path) -> None:
    over = {"a": [0.0, 1.0], "b": [0.0, 0.5], "each": [True, False], "n": [1, 2]}
    tree = attnscope.sweep(Hill(noise=0.01), over, tmp_path / "s", workers=1)
    (figure,) = figures_of(tree)
    titles = [panel.title for panel in figure.panels]
    assert titles == [f"each = {each}, n = {n}" for each in ("False", "True") for n in (1, 2)]


def test_a_refined_map_is_filled_from_its_nearest_points(tmp_path: Path) -> None:
    over = {"a": [0.0, 1.0], "b": [0.0, 0.9]}
    tree = attnscope.sweep(Hill(), over, tmp_path / "s", workers=1, refine="low", within=0.13)
    (figure,) = figures_of(tree)
    heat = figure.panels[0].marks[0]
    assert isinstance(heat, Heat)
    assert np.isfinite(heat.values).all()
    assert "nearest" in figure.caption


def test_edges_lie_half_way_and_criteria_are_read_back() -> None:
    np.testing.assert_allclose(
        edges_of(np.array([1.0, 10.0, 100.0]), True), 10 ** np.arange(-0.5, 3)
    )
    np.testing.assert_allclose(edges_of(np.array([3.0]), False), [2.5, 3.5])
    for each in (Criterion(high=0.02), Criterion(low=100), Criterion(-1e-9, 1.25)):
        assert read_criterion(str(each)) == each


def test_a_claim_that_is_not_there_is_a_sentence(two: xr.DataTree) -> None:
    with pytest.raises(AttnscopeError, match="there is no claim 'high'"):
        list(diagrams(two, claims=["high"]))
