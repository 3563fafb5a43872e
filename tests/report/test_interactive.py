from __future__ import annotations

import numpy as np
from bokeh.core.json_encoder import serialize_json
from bokeh.embed import json_item
from bokeh.models import (
    ColumnDataSource,
    HoverTool,
    HSpan,
    Image,
    Legend,
    LogAxis,
    LogColorMapper,
    MultiLine,
    Patches,
    PlainText,
    Plot,
    Quad,
    Scatter,
    Segment,
    VSpan,
)
from bokeh.models import Line as LineGlyph
from bokeh.models.annotations.legends import ColorBar

from attnscope.report import style
from attnscope.report.figure import Band, Dots, Figure, Heat, Histogram, Line, Panel
from attnscope.report.interactive import layout


def panels(figure: Figure) -> list[Plot]:
    [*_, grid] = layout(figure).children
    return grid.children


def glyphs(plot: Plot, kind: type) -> list:
    return [renderer for renderer in plot.renderers if isinstance(renderer.glyph, kind)]


def test_every_mark_becomes_a_glyph(every_mark: Figure) -> None:
    linear, log = panels(every_mark)
    counts = {
        kind: len(glyphs(linear, kind))
        for kind in (LineGlyph, Patches, MultiLine, Quad, Scatter, Segment, HSpan, VSpan)
    }
    assert list(counts.values()) == [2, 1, 2, 1, 1, 1, 1, 1]
    assert len(glyphs(log, Segment)) == 1
    assert linear.renderers[-1].glyph.line_dash
    assert linear.renderers[-1].glyph.line_color == style.THEORY
    assert isinstance(log.xaxis[0], LogAxis)
    assert isinstance(log.yaxis[0], LogAxis)
    assert not isinstance(linear.xaxis[0], LogAxis)
    assert linear.xaxis[0].ticker.ticks == [1.0, 5.0]
    assert linear.xaxis[0].axis_label.text == "x (s)"
    assert linear.toolbar.logo is None


def test_intervals_lie_above_all_bars_and_below_theory() -> None:
    x, one = np.arange(2.0), np.ones(1)
    bars = Histogram(x, one, one, one)
    marks = (Line(x, x, theory=True), bars, bars, Line(x, x, thin=True), Band(x, x, x))
    [plot] = panels(Figure("f", "", "", (Panel("", "x", "y", marks),)))
    order = [type(renderer.glyph).__name__ for renderer in plot.renderers]
    assert order == ["Patches", "Quad", "Quad", "Segment", "Segment", "MultiLine", "Line"]


def test_bars_on_a_log_axis_stand_on_its_floor(every_mark: Figure) -> None:
    _, log = panels(every_mark)
    [bars] = glyphs(log, Quad)
    assert bars.glyph.bottom == 0.25  # half of the smallest positive number, 0.5
    np.testing.assert_array_equal(bars.data_source.data["y"], [np.nan, 3.0])


def test_values_arrive_unchanged_in_float32(every_mark: Figure) -> None:
    for source in layout(every_mark).select({"type": ColumnDataSource}):
        for name, column in source.data.items():
            if isinstance(column, np.ndarray):
                assert column.dtype == np.float32, name
    linear, _ = panels(every_mark)
    ours = every_mark.panels[0].marks[1]
    [line] = [r for r in glyphs(linear, LineGlyph) if r.data_source.data["label"][0] == "ours"]
    np.testing.assert_array_equal(line.data_source.data["y"], ours.y.astype(np.float32))


def test_one_legend_hides_a_label_in_all_panels(every_mark: Figure) -> None:
    view = layout(every_mark)
    [legend] = view.select({"type": Legend})
    labels = [item.label.value for item in legend.items]
    assert len(labels) == len(set(labels)) == 8
    assert legend.click_policy == "hide"
    linear, log = view.children[1].children
    ours = next(item for item in legend.items if item.label.value == "ours")
    assert len([r for r in linear.renderers if r in ours.renderers]) == 2
    assert len([r for r in log.renderers if r in ours.renderers]) == 1


def test_no_labels_no_legend() -> None:
    x = np.arange(3.0)
    figure = Figure("f", "", "", (Panel("", "x", "y", (Line(x, x),)),))
    assert not list(layout(figure).select({"type": Legend}))


def test_many_thin_lines_are_one_glyph() -> None:
    x = np.linspace(0, 1, 300)
    lines = tuple(Line(x, x * k, f"w{k}", color=k, thin=True) for k in range(40))
    [plot] = panels(Figure("f", "", "", (Panel("", "x", "y", lines),)))
    [renderer] = plot.renderers
    data = renderer.data_source.data
    assert len(data["xs"]) == 40
    assert all(len(row) == 300 for row in data["ys"])
    assert data["label"] == [f"w{k}" for k in range(40)]
    assert data["color"][9] == style.color(9)


def test_a_band_is_broken_where_it_has_no_value() -> None:
    x = np.arange(7.0)
    low = np.array([0, 1, np.nan, 3, 4, 5, np.nan])
    [plot] = panels(Figure("f", "", "", (Panel("", "x", "y", (Band(x, low, low + 1),)),)))
    data = plot.renderers[0].data_source.data
    np.testing.assert_array_equal(data["xs"][0], [0, 1, 1, 0])
    np.testing.assert_array_equal(data["xs"][1], [3, 4, 5, 5, 4, 3])
    np.testing.assert_array_equal(data["ys"][0], [0, 1, 2, 1])


def test_hover_tells_values_and_interval() -> None:
    x = np.arange(3.0)
    dots = Dots(x, x, x - 1, x + 1, "d")
    [plot] = panels(Figure("f", "", "", (Panel("", "time (s)", "loss", (dots,)),)))
    [hover] = plot.select({"type": HoverTool})
    assert [row[0] for row in hover.tooltips] == ["", "time (s)", "loss", "interval"]
    assert hover.tooltips[0][1] == "@label"  # a column, which Bokeh inserts as text
    assert hover.formatters["@low"] == "printf"


def test_texts_are_never_formulas(every_mark: Figure) -> None:
    word = r"$$\alpha$$"
    x = np.arange(2.0)
    page = Panel(word, word, word, (Line(x, x, word),), xticks=((0.0, word),))
    [plot] = panels(Figure("f", word, word, (page,)))
    axis = plot.xaxis[0]
    for text in (plot.title.text, axis.axis_label, axis.major_label_overrides[0.0]):
        assert isinstance(text, PlainText)
        assert text.text == word


def test_awkward_figures_can_be_drawn(awkward: Figure) -> None:
    text = serialize_json(json_item(layout(awkward)))
    assert len(panels(awkward)) == 5
    assert "Infinity" not in text


def test_huge_and_tiny_values_do_not_warn() -> None:
    x = np.array([1e-60, 1.0, 1e60])
    figure = Figure("f", "", "", (Panel("", "x", "y", (Line(x, x),), "log", "log"),))
    assert serialize_json(json_item(layout(figure)))


def test_an_even_heat_map_is_an_image_below_all_marks(heats: Figure) -> None:
    matrix, _ = panels(heats)
    [image] = glyphs(matrix, Image)
    assert matrix.renderers[0] is image
    np.testing.assert_array_equal(
        image.data_source.data["image"][0], heats.panels[0].marks[-1].values
    )
    mapper = image.glyph.color_mapper
    assert (mapper.low, mapper.high) == (-4.0, 4.0)
    assert mapper.palette == style.ramp(diverging=True)
    [bar] = matrix.select({"type": ColorBar})
    assert bar.color_mapper is mapper
    hovers = {hover.renderers[0]: hover for hover in matrix.select({"type": HoverTool})}
    assert hovers[image].tooltips[-1] == ("weight", "@image{%.5g}")
    assert hovers[image].formatters["@image"] == "printf"


def test_a_heat_map_on_log_axes_or_of_uneven_cells_is_quads(heats: Figure) -> None:
    _, landscape = panels(heats)
    [quads] = glyphs(landscape, Quad)
    data = quads.data_source.data
    np.testing.assert_array_equal(data["value"], [1, 10, 1000])  # zero has no logarithm
    np.testing.assert_array_equal(data["left"], [1, 10, 10])
    np.testing.assert_array_equal(data["top"], [10, 10, 100])
    mapper = quads.glyph.fill_color.transform
    assert isinstance(mapper, LogColorMapper)
    assert (mapper.low, mapper.high) == (1.0, 1000.0)
    uneven = Heat(np.array([0.0, 1.0, 3.0]), np.arange(2.0), np.ones((1, 2)))
    [plot] = panels(Figure("f", "", "", (Panel("", "x", "y", (uneven,)),)))
    assert len(glyphs(plot, Quad)) == 1


def test_lines_over_a_heat_map_have_a_halo_that_the_legend_hides(heats: Figure) -> None:
    view = layout(heats)
    [legend] = view.select({"type": Legend})
    assert [item.label.value for item in legend.items] == ["over", "dots", "rule", "thin"]
    matrix, landscape = view.children[1].children
    halo, line = glyphs(matrix, LineGlyph)
    assert halo.glyph.line_color == style.HALO
    assert halo.glyph.line_width > line.glyph.line_width
    [over] = [item for item in legend.items if item.label.value == "over"]
    assert {halo, line, *glyphs(landscape, LineGlyph)} <= set(over.renderers)


def test_a_matrix_of_a_hundred_words_stays_small() -> None:
    edges = np.arange(102.0)
    page = Panel("", "x", "y", (Heat(edges, edges, np.ones((101, 101))),))
    text = serialize_json(json_item(layout(Figure("f", "", "", (page,)))))
    assert len(text) < 80_000
