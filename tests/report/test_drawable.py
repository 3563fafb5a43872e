from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.report.drawable import (
    LEGEND_LIMIT,
    bare,
    cells,
    color_range,
    drawable,
    floor,
    has_heat,
    interval_positions,
    legend,
    rule_numbers,
)
from attnscope.report.figure import Band, Dots, Figure, Heat, Histogram, Line, Panel, Rule


def panel(*marks, **scales) -> Panel:
    return Panel("p", "x", "y", marks, **scales)


def test_what_cannot_be_drawn_is_not_a_number() -> None:
    values = np.array([-1.0, 0.0, 2.0, np.inf, np.nan])
    [linear] = drawable(panel(Line(values, values))).marks
    np.testing.assert_array_equal(linear.y, [-1, 0, 2, np.nan, np.nan])
    [log] = drawable(panel(Line(values, values), xscale="log", yscale="log")).marks
    np.testing.assert_array_equal(log.x, [np.nan, np.nan, 2, np.nan, np.nan])
    np.testing.assert_array_equal(log.y, [np.nan, np.nan, 2, np.nan, np.nan])


def test_interval_that_reaches_below_a_log_axis_ends_at_its_floor() -> None:
    dots = Dots(np.array([1.0, 2.0]), np.array([4.0, 8.0]), np.array([-1.0, 6.0]), np.array([5, 9]))
    page = panel(dots, yscale="log")
    assert floor(page) == 2.0  # half of the smallest positive number, 4
    [shown] = drawable(page).marks
    np.testing.assert_array_equal(shown.low, [2.0, 6.0])


def test_floor_without_positive_numbers() -> None:
    assert floor(panel(yscale="log")) > 0
    assert floor(panel(Line(np.zeros(2), np.zeros(2)), yscale="log")) > 0
    assert floor(panel(Line(np.ones(2), np.ones(2)))) == 0


def test_a_panel_is_bare_if_nothing_can_be_drawn() -> None:
    below = Line(np.array([1.0, 2.0]), np.array([-1.0, np.nan]))
    assert bare(panel())
    assert bare(panel(below, yscale="log"))
    assert not bare(panel(below))
    assert not bare(panel(Rule(1.0)))


def test_theory_is_drawn_last_and_areas_first() -> None:
    x = np.arange(3.0)
    marks = (
        Line(x, x, "theory", theory=True),
        Dots(x, x),
        Line(x, x, "thin", thin=True),
        Line(x, x, "ours"),
        Rule(1.0),
        Histogram(np.arange(4.0), x),
        Band(x, x, x),
        Heat(x, x, np.ones((2, 2))),
    )
    shown = drawable(panel(*marks)).marks
    kinds = [type(mark).__name__ for mark in shown]
    assert kinds == ["Heat", "Band", "Histogram", "Rule", "Line", "Line", "Dots", "Line"]
    assert shown[4].thin
    assert shown[-1].theory


def test_rules_off_the_axis_are_left_out() -> None:
    marks = (Rule(-1.0), Rule(0.0, vertical=True), Rule(1.0), Rule(np.nan))
    assert [mark.at for mark in drawable(panel(*marks, yscale="log")).marks] == [0.0, 1.0]


def test_intervals_of_histograms_stand_side_by_side() -> None:
    one = np.ones(2)
    bars = Histogram(np.array([1.0, 4.0, 7.0]), one, one, one)
    bare = Histogram(np.array([1.0, 4.0, 7.0]), one)
    positions = interval_positions(panel(bars, bare, bars))
    assert set(positions) == {0, 2}
    np.testing.assert_allclose(positions[0], [2, 5], rtol=1e-15)
    np.testing.assert_allclose(positions[2], [3, 6], rtol=1e-15)
    log = Histogram(np.array([1.0, 100.0]), one[:1], one[:1], one[:1])
    [[at]] = interval_positions(panel(log, xscale="log")).values()
    assert at == pytest.approx(10.0, rel=1e-14)


def test_legend_lists_each_label_once_with_its_kinds() -> None:
    x = np.arange(2.0)
    first = panel(Line(x, x, "a"), Band(x, x, x, "a"), Line(x, x), Dots(x, x, label="b"))
    second = panel(Line(x, x, "a"), Rule(1.0, "c"), Rule(2.0, "d"))
    figure = Figure("f", "", "", (first, second))
    kinds = {
        label: [type(mark).__name__ for mark in marks] for label, marks in legend(figure).items()
    }
    assert kinds == {"a": ["Line", "Band"], "b": ["Dots"], "c": ["Rule"], "d": ["Rule"]}
    assert rule_numbers(figure) == {"c": 0, "d": 1}


def test_many_thin_lines_leave_the_legend() -> None:
    x = np.arange(2.0)
    few = [Line(x, x, f"w{i}", thin=True) for i in range(LEGEND_LIMIT - 1)]
    mean = Line(x, x, "mean")
    assert len(legend(Figure("f", "", "", (panel(*few, mean),)))) == LEGEND_LIMIT
    many = [*few, Line(x, x, "one more", thin=True)]
    assert list(legend(Figure("f", "", "", (panel(*many, mean),)))) == ["mean"]


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (Line(np.zeros(3), np.zeros(4), "a"), "Line 'a' in panel 'p': x has shape (3,), y has sha"),
        (Line(np.zeros((2, 2)), np.zeros((2, 2))), "expected one dimension"),
        (Band(np.zeros(3), np.zeros(3), np.zeros(2)), "high has shape (2,)"),
        (Histogram(np.zeros(3), np.zeros(3)), "right_edges has shape (2,)"),
        (Dots(np.zeros(3), np.zeros(3), low=np.zeros(3)), "both low and high, or neither"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(mark, words: str) -> None:
    with pytest.raises(AttnscopeError) as caught:
        drawable(panel(mark))
    assert words in str(caught.value)


def heat(values, x=(0.0, 1.0, 2.0), y=(0.0, 1.0, 3.0), **look) -> Heat:
    return Heat(np.array(x), np.array(y), np.array(values), "h", **look)


def test_a_heat_map_loses_what_has_no_colour() -> None:
    values = [[-1.0, 0.0], [2.0, np.inf]]
    [plain] = drawable(panel(heat(values))).marks
    np.testing.assert_array_equal(plain.values, [[-1, 0], [2, np.nan]])
    [log] = drawable(panel(heat(values, log=True))).marks
    np.testing.assert_array_equal(log.values, [[np.nan, np.nan], [2, np.nan]])


def test_cells_of_a_heat_map_go_row_after_row() -> None:
    left, right, bottom, top = cells(heat([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(left, [0, 1, 0, 1])
    np.testing.assert_array_equal(right, [1, 2, 1, 2])
    np.testing.assert_array_equal(bottom, [0, 0, 1, 1])
    np.testing.assert_array_equal(top, [1, 1, 3, 3])


@pytest.mark.parametrize(
    ("values", "look", "ends"),
    [
        ([[-1.0, 0.0], [3.0, np.nan]], {}, (-1, 3)),
        ([[-1.0, 0.0], [3.0, np.nan]], {"diverging": True}, (-3, 3)),
        ([[2.0, 2.0], [2.0, 2.0]], {}, (1.5, 2.5)),
        ([[2.0, 2.0], [2.0, 2.0]], {"log": True}, (1, 4)),
        ([[0.0, 0.0], [0.0, 0.0]], {"diverging": True}, (-0.5, 0.5)),
    ],
)
def test_colours_span_the_values(values, look, ends) -> None:
    assert color_range(heat(values, **look)) == ends


def test_a_heat_map_has_a_colour_bar_and_no_legend() -> None:
    page = panel(heat([[1.0, 2.0], [3.0, 4.0]]), Rule(1.0, "rule"))
    assert list(legend(Figure("f", "", "", (page,)))) == ["rule"]
    assert has_heat(page)
    assert not has_heat(panel(Rule(1.0)))
    assert not bare(page)


@pytest.mark.parametrize(
    ("mark", "scales", "words"),
    [
        (heat([[1.0, 2.0]]), {}, "Heat 'h' in panel 'p': values has shape (1, 2), x has shape (3,"),
        (heat(np.empty((0, 2)), y=(1.0,)), {}, "expected (rows, columns), (columns + 1,) and"),
        (heat(np.ones((2, 2)), x=(0.0, 2.0, 1.0)), {}, "the edges x to be finite and rising"),
        (heat(np.ones((2, 2)), y=(0.0, 1.0, np.inf)), {}, "the edges y to be finite and rising"),
        (heat(np.ones((2, 2))), {"xscale": "log"}, "the edges x to be finite, positive (the axis"),
        (heat(np.full((2, 2), np.nan)), {}, "nothing to draw; expected one finite number"),
        (heat(-np.ones((2, 2)), log=True), {}, "nothing to draw; expected one positive number"),
        (heat(np.ones((2, 2)), log=True, diverging=True), {}, "log or diverging colours, not both"),
    ],
)
def test_heat_maps_that_cannot_be_drawn_are_refused(mark, scales, words: str) -> None:
    with pytest.raises(AttnscopeError) as caught:
        drawable(panel(mark, **scales))
    assert words in str(caught.value)


def test_panels_can_share_the_reach_of_their_colours() -> None:
    edges, values = np.arange(3.0), np.array([[0.1, -0.2], [0.0, 0.1]])
    assert color_range(Heat(edges, edges, values, diverging=True)) == (-0.2, 0.2)
    assert color_range(Heat(edges, edges, values, diverging=True, reach=2.0)) == (-2.0, 2.0)
