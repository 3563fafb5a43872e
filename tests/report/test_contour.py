from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.report import Contour, Figure, Heat, Line, Panel, static
from attnscope.report.contours import iso_lines, levels_of
from attnscope.report.drawable import bare, drawable, legend
from attnscope.report.glyphs import Canvas
from attnscope.report.interactive import layout
from attnscope.report.tables import write_marks

X, Y = np.linspace(-2, 2, 81), np.linspace(-1, 1, 41)
CONE = np.hypot(X, Y[:, None])


def panel(*marks: Contour | Heat | Line, xscale: str = "linear") -> Panel:
    return Panel("p", "x", "y", marks, xscale=xscale)


def test_lines_lie_where_the_heights_are() -> None:
    mark = Contour(X, Y, CONE, levels=(0.75, 0.5), label="height")
    lines = iso_lines(mark, panel(mark))
    assert [line.level for line in lines] == [0.5, 0.75]
    for line in lines:
        np.testing.assert_allclose(np.hypot(line.x, line.y), line.level, atol=2e-3)
        assert line.numbered
        assert np.hypot(*line.middle) == pytest.approx(line.level, abs=2e-3)


def test_one_number_a_level_on_its_longest_line() -> None:
    mark = Contour(X, Y, np.sin(3 * X) + 0 * Y[:, None], levels=(0.5,))
    lines = iso_lines(mark, panel(mark))
    assert len(lines) > 1
    assert sum(line.numbered for line in lines) == 1


def test_levels_are_round_and_inside_unless_given() -> None:
    levels = levels_of(Contour(X, Y, CONE))
    assert 4 <= len(levels) <= 9
    assert all(0 < level < CONE.max() for level in levels)
    assert all(abs(10 * level - round(10 * level)) < 1e-9 for level in levels)
    assert levels_of(Contour(X, Y, np.ones_like(CONE))) == []
    assert levels_of(Contour(X, Y, np.full_like(CONE, np.nan))) == []


def test_holes_break_lines() -> None:
    holed = CONE.copy()
    holed[:, X > 0] = np.nan
    mark = drawable(panel(Contour(X, Y, holed, levels=(0.5,)))).marks[0]
    assert isinstance(mark, Contour)
    (line,) = iso_lines(mark, panel(mark))
    assert line.x.max() <= 1e-9


def test_on_a_log_axis_lines_are_straight_between_points() -> None:
    x = np.array([1.0, 100.0])
    mark = Contour(x, np.array([0.0, 1.0]), np.array([[0.0, 2.0], [0.0, 2.0]]), levels=(1.0,))
    (line,) = iso_lines(mark, panel(mark, xscale="log"))
    np.testing.assert_allclose(line.x, 10.0)


def test_contours_lie_over_heat_and_under_lines_and_are_in_the_legend() -> None:
    edges = [np.linspace(-2.025, 2.025, 82), np.linspace(-1.025, 1.025, 42)]
    marks = (
        Line(X, X / 2, "path"),
        Contour(X, Y, CONE, label="equal height"),
        Heat(*edges, CONE, "height"),
    )
    whole = panel(*marks)
    assert [type(mark).__name__ for mark in drawable(whole).marks] == ["Heat", "Contour", "Line"]
    assert list(legend(Figure("f", "F", "", (whole,)))) == ["path", "equal height"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"values": CONE.T}, r"values has shape \(81, 41\).*expected \(rows, columns\)"),
        ({"x": X[::-1]}, "expected the points x to be finite and rising"),
        ({"levels": (np.nan,)}, r"levels = \(nan,\); expected finite numbers"),
    ],
)
def test_what_has_no_lines_gets_a_sentence(changes: dict[str, object], sentence: str) -> None:
    fields = {"x": X, "y": Y, "values": CONE, "label": "c", **changes}
    with pytest.raises(AttnscopeError, match="Contour 'c' in panel 'p': " + sentence):
        drawable(panel(Contour(**fields)))


def test_both_renderers_draw_the_same_lines(tmp_path: Path) -> None:
    mark = Contour(X, Y, CONE, levels=(0.5, 0.75), label="$equal$ <b>height</b>")
    figure = Figure("f", "F", "", (panel(mark), panel(Contour(X, Y, 0 * CONE, label="flat"))))
    assert not bare(figure.panels[0])
    axes = static.draw(figure).axes[0]
    xs, ys = axes.lines[0].get_data()
    assert {text.get_text() for text in axes.texts} == {"0.5", "0.75"}
    from bokeh.plotting import figure as plot

    canvas = Canvas(plot(), figure.panels[0], {})
    lines, numbers = canvas.mark(drawable(figure.panels[0]).marks[0])
    drawn = np.concatenate(lines.data_source.data["xs"])
    np.testing.assert_allclose(drawn, xs[np.isfinite(xs)], rtol=1e-6)
    np.testing.assert_allclose(
        np.concatenate(lines.data_source.data["ys"]), ys[np.isfinite(ys)], rtol=1e-6, atol=1e-12
    )
    assert numbers.data_source.data["text"] == ["0.5", "0.75"]
    layout(figure)
    first = [path.read_bytes() for path in static.save(figure, tmp_path)]
    assert [path.read_bytes() for path in static.save(figure, tmp_path)] == first


def test_heights_are_in_the_csv(tmp_path: Path) -> None:
    small = Contour(np.array([0.0, 1.0]), np.array([5.0, 6.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    path = write_marks(Figure("f", "F", "", (panel(small),)), tmp_path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [(r["x"], r["y"], r["value"]) for r in rows] == [
        ("0.0", "5.0", "1.0"),
        ("1.0", "5.0", "2.0"),
        ("0.0", "6.0", "3.0"),
        ("1.0", "6.0", "4.0"),
    ]
    assert {r["mark"] for r in rows} == {"contour"}
