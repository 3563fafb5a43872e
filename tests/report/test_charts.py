"""The usual figures and tables, from labelled readings."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnscope.report import Band, Line, band, bands, curves, each_seed, ends
from attnscope.trajectory import Readings


@pytest.fixture
def run() -> Readings:
    runs = [(case, seed) for seed in range(3) for case in ("a", "b")]
    steps = {"step": [0, 1, 2], "time": ("step", [0.0, 0.1, 0.2]), "epoch": ("step", [0, 1, 2])}
    names = {"case": ("run", [c for c, _ in runs]), "seed": ("run", [s for _, s in runs])}
    values = np.random.default_rng(0).uniform(1, 2, (6, 3, 2))
    dims = ("run", "step", "word")
    seen = xr.Dataset(
        {"x": (dims, values, {"unit": "nats"}), "y": (dims, values**2)}, {**names, **steps}
    )
    stats = xr.Dataset({"seconds": ("run", np.arange(6.0))}, names)
    theory = xr.Dataset({"x": (dims, values + 1)}, {**names, **steps})
    return Readings(xr.DataTree.from_dict({"observables": seen, "stats": stats, "theory": theory}))


def test_a_band_is_the_mean_over_seeds_and_its_interval(run: Readings) -> None:
    area, line = band(run.of("a").x, "x", 2, x="time")
    assert isinstance(area, Band)
    assert isinstance(line, Line)
    values = run.of("a").x.mean("word").to_numpy()
    np.testing.assert_allclose(line.y, values.mean(axis=0))
    half = 4.302652729911275 * values.std(axis=0, ddof=1) / np.sqrt(3)  # Student, 2 degrees
    np.testing.assert_allclose(area.high - line.y, half)
    assert line.x.tolist() == [0.0, 0.1, 0.2]
    assert line.color == area.color == 2


def test_on_a_logarithmic_axis_the_mean_is_geometric(run: Readings) -> None:
    _, line = band(run.of("a").x, log=True)
    assert isinstance(line, Line)
    values = run.of("a").x.mean("word").to_numpy()
    np.testing.assert_allclose(line.y, np.exp(np.log(values).mean(axis=0)))


def test_one_seed_has_no_band(run: Readings) -> None:
    (line,) = band(run.of("a").x.isel(seed=[0]))
    assert isinstance(line, Line)
    marks = bands({"a": run.of("a").x, "b": run.of("b").x})
    assert [mark.color for mark in marks] == [0, 0, 1, 1]


def test_every_seed_is_drawn_and_the_first_is_named(run: Readings) -> None:
    lines = each_seed(run.of("b").x, "b", 1)
    assert [line.label for line in lines] == ["b", "", ""]
    assert [line.thin for line in lines if isinstance(line, Line)] == [False, True, True]


def test_curves_have_a_panel_a_case_and_theory_over_them(run: Readings) -> None:
    figure = curves(run, "x", theory="x")
    assert [panel.title for panel in figure.panels] == ["a", "b"]
    assert figure.panels[0].ylabel == "x (nats)"
    lines = [mark for mark in figure.panels[0].marks if isinstance(mark, Line)]
    assert [line.theory for line in lines] == [False] * 3 + [True] * 3
    np.testing.assert_allclose(lines[3].y - lines[0].y, 1.0)
    against = curves(run, "y", over="x", cases=("b",))
    assert against.name == "y-over-x"
    (panel,) = against.panels
    np.testing.assert_allclose(panel.marks[0].x, run.of("b").x.mean("word")[0])  # type: ignore[union-attr]


def test_ends_are_means_over_seeds_at_the_last_step(run: Readings) -> None:
    table = ends(run, "x", more={"seconds": run.stats.seconds}, head="model")
    assert table.columns == ("model", "x (nats)", "seconds")
    assert [row[0] for row in table.rows] == ["a", "b"]
    assert table.rows[1][1] == pytest.approx(float(run.of("b").x.isel(step=-1).mean()))
    assert table.rows[1][2] == 3.0
