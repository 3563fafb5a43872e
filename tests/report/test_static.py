from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from attnscope.report import static, style
from attnscope.report.figure import Figure, Histogram, Line, Panel


def test_every_mark_is_drawn(every_mark: Figure) -> None:
    linear, log = static.draw(every_mark).axes
    assert len(linear.lines) == 2 + 2 + 1 + 2  # curves, thin curves, dots, rules
    assert len(linear.patches) == 3
    assert len(linear.collections) == 2  # band, intervals of the dots
    top = max(linear.lines, key=lambda line: line.get_zorder())
    assert to_hex(top.get_color()).upper() == style.THEORY
    assert top.is_dashed()
    assert log.get_xscale() == log.get_yscale() == "log"
    assert linear.get_xlabel() == "x (s)"
    assert [text.get_text() for text in linear.get_xticklabels()] == ["one", "five"]


def test_intervals_lie_above_all_bars_and_below_theory() -> None:
    x, one = np.arange(2.0), np.ones(1)
    bars = Histogram(x, one, one, one)
    page = Panel("", "x", "y", (Line(x, x, theory=True), bars, bars))
    [axes] = static.draw(Figure("f", "", "", (page,))).axes
    [theory], intervals = axes.lines, axes.collections
    assert len(intervals) == 2
    for interval in intervals:
        # Matplotlib draws lines, patches and collections of one level in the order of drawing.
        assert all(patch.get_zorder() <= interval.get_zorder() for patch in axes.patches)
        assert interval.get_zorder() < theory.get_zorder()


def test_one_legend_lists_each_label_once(every_mark: Figure) -> None:
    drawn = static.draw(every_mark)
    [legend] = drawn.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(labels) == len(set(labels)) == 8
    assert all(axes.get_legend() is None for axes in drawn.axes)


def test_heat_maps_lie_below_all_marks_and_have_colour_bars(heats: Figure) -> None:
    matrix, left, landscape, right = static.draw(heats).axes
    [cells] = matrix.collections
    assert all(cells.get_zorder() < line.get_zorder() for line in matrix.lines)
    np.testing.assert_array_equal(cells.get_array().mask.ravel(), [0, 0, 0, 1, 0, 0, 0, 0, 0])
    assert cells.get_clim() == (-4.0, 4.0)
    [cells] = landscape.collections
    assert cells.get_clim() == (1.0, 1000.0)
    # The colour of 10 on a logarithmic ramp from 1 to 1000.
    assert to_hex(cells.to_rgba(10.0)).upper() == style.ramp(diverging=False)[int(256 / 3)]
    assert [bar.get_ylabel() for bar in (left, right)] == ["weight", "loss (nats)"]
    assert all(line.get_path_effects() for axes in (matrix, landscape) for line in axes.lines)


@pytest.mark.parametrize("name", ["every_mark", "heats"])
def test_nothing_overlaps(name: str, request: pytest.FixtureRequest) -> None:
    drawn = static.draw(request.getfixturevalue(name))
    drawn.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in drawn.axes] + [drawn.legends[0].get_window_extent()]
    for number, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= drawn.bbox.x1
        assert box.y1 <= drawn.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:number])


@pytest.mark.parametrize("name", ["every_mark", "heats"])
def test_the_same_figure_gives_the_same_bytes(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    figure = request.getfixturevalue(name)
    first = static.save(figure, tmp_path / "a")
    second = static.save(figure, tmp_path / "b")
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    heads = [path.read_bytes()[:5] for path in first]
    assert heads == [b"\x89PNG\r", b"<?xml", b"%PDF-"]
    assert b"<dc:date>" not in first[1].read_bytes()
    assert b"/CreationDate" not in first[2].read_bytes()


def test_the_callers_settings_neither_matter_nor_change(every_mark: Figure, tmp_path: Path) -> None:
    [plain, *_] = static.save(every_mark, tmp_path / "a")
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "figure.facecolor": "red"}):
        [styled, *_] = static.save(every_mark, tmp_path / "b")
        assert mpl.rcParams["font.size"] == 30
    assert plain.read_bytes() == styled.read_bytes()


def test_pyplot_is_not_imported() -> None:
    code = "import sys, attnscope.report.static; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_awkward_figures_can_be_saved(awkward: Figure, tmp_path: Path) -> None:
    assert all(path.stat().st_size > 1000 for path in static.save(awkward, tmp_path))


@pytest.mark.parametrize("word", ["$PAD$", r"$\frac{$", "5 $ and 6 $", "漢字", "<b>&"])
def test_words_are_not_formulas(word: str, tmp_path: Path) -> None:
    x = np.arange(2.0)
    page = Panel(word, word, word, (Line(x, x, word),), xticks=((0.0, word),))
    figure = Figure("f", "", "", (page,))
    assert static.save(figure, tmp_path)
    drawn = static.draw(figure)
    text, is_math = drawn.axes[0].title._preprocess_math(drawn.axes[0].get_title(loc="left"))
    assert not is_math
    assert text == word
