"""A figure drawn with Matplotlib for print: PNG, SVG and PDF, the same bytes every time.

``pyplot`` is never imported, so a caller's own figures and settings are left alone.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from attnscope.files import write_bytes
from attnscope.report import style
from attnscope.report.contours import iso_lines
from attnscope.report.drawable import (
    color_range,
    crowded,
    drawable,
    floor,
    has_heat,
    interval_positions,
    legend,
    rule_numbers,
)
from attnscope.report.figure import (
    Band,
    Contour,
    Dots,
    Figure,
    Heat,
    Histogram,
    Line,
    Listed,
    Panel,
    Rule,
)
from attnscope.report.page import IMAGES
from attnscope.report.static_surface import draw_surface

PANEL_WIDTH, PANEL_HEIGHT = 3.5, 2.75
"""In inches; three panels are as wide as a page in landscape."""
DPI = 200

SETTINGS: Any = {
    # Not the caller's settings but Matplotlib's own; the backend would not be restored.
    **{key: value for key, value in mpl.rcParamsDefault.items() if key != "backend"},
    "font.family": "DejaVu Sans",  # comes with Matplotlib, hence the same everywhere
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.edgecolor": style.INK,
    "axes.labelcolor": style.INK,
    "text.color": style.INK,
    "xtick.color": style.INK,
    "ytick.color": style.INK,
    "grid.color": style.GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "svg.hashsalt": "attnscope",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}

UNDATED: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None, "Creator": None, "Producer": None},
}


def draw(figure: Figure) -> MatplotlibFigure:
    """Return the figure drawn with Matplotlib, laid out and ready to be saved."""
    with mpl.rc_context(SETTINGS):
        return _draw(figure)


def save(figure: Figure, folder: Path, images: Sequence[str] = IMAGES) -> list[Path]:
    """Write ``<name>.png``, ``.svg`` and ``.pdf``, or some of them; return their paths."""
    paths = []
    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # A word in a script that the font lacks is drawn as boxes; that is no failure.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        canvas = _draw(figure)
        # Laid out once: the files agree, and the layout costs more than the drawing.
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")
        for ending in images:
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=ending, metadata=UNDATED[ending])
            paths.append(write_bytes(folder / f"{figure.name}.{ending}", buffer.getvalue()))
    return paths


def _draw(figure: Figure) -> MatplotlibFigure:
    count = len(figure.surfaces) + len(figure.panels)
    columns = max(1, min(figure.columns, count))
    rows = max(1, math.ceil(count / columns))
    width = PANEL_WIDTH * columns if columns > 1 else 1.5 * PANEL_WIDTH
    entries, legend_columns = _legend_entries(figure, width)
    legend_height = 0.2 * math.ceil(len(entries) / legend_columns) + 0.1 if entries else 0.0
    size = (width, PANEL_HEIGHT * rows + legend_height)
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06)
    canvas = MatplotlibFigure(size, dpi=DPI, layout=layout)
    rules = rule_numbers(figure)
    for number, surface in enumerate(figure.surfaces, start=1):
        draw_surface(canvas, (rows, columns, number), surface)
    for number, panel in enumerate(figure.panels, start=len(figure.surfaces) + 1):
        _draw_panel(canvas.add_subplot(rows, columns, number), panel, rules)
    if entries:
        # A tuple of handles is drawn as one, such as a line upon its band.
        handles: list[Any] = [handle for _, handle in entries]
        canvas.legend(
            handles,
            [text for text, _ in entries],
            loc="outside lower center",
            ncols=legend_columns,
            handlelength=2.4,
            columnspacing=1.4,
        )
    return canvas


def _legend_entries(figure: Figure, width: float) -> tuple[list[tuple[str, tuple[Any, ...]]], int]:
    """Return texts and handles, and how many of them fit side by side in ``width`` inches."""
    rules = rule_numbers(figure)
    entries = [
        (_plain(label, 70), tuple(_handle(mark, rules) for mark in marks))
        for label, marks in legend(figure).items()
    ]
    longest = max((len(line) for text, _ in entries for line in text.split("\n")), default=1)
    fitting = int(width / (0.55 + 0.078 * longest))
    return entries, max(1, min(fitting, len(entries)))


def _draw_panel(axes: Axes, panel: Panel, rules: dict[str, int]) -> None:
    axes.set_title(_plain(panel.title, 46), loc="left")
    axes.set_xlabel(_plain(panel.xlabel, 46))
    axes.set_ylabel(_plain(panel.ylabel, 38))
    axes.set_xscale(panel.xscale)
    if panel.xscale == "linear":
        # A few ticks: numbers such as -0.025 would run into each other.
        axes.locator_params(axis="x", nbins=5)
    axes.set_yscale(panel.yscale)
    shown = drawable(panel)
    for index, mark in enumerate(shown.marks):
        order = 2 + index * 0.001
        if isinstance(mark, Contour):
            _draw_contour(axes, mark, panel, order)
        else:
            _draw_mark(axes, mark, rules, order, floor(panel))
    # On the last histogram's level, since the bars of a neighbour would cover them.
    last_bars = sum(isinstance(mark, Heat | Band | Histogram) for mark in shown.marks) - 1
    for index, at in interval_positions(shown).items():
        bars = shown.marks[index]
        assert isinstance(bars, Histogram)
        _draw_intervals(axes, bars, at, 2 + last_bars * 0.001)
    if has_heat(panel):
        for line in axes.lines:
            # Iso-lines are many and near each other: their halo is thin.
            wide = line.get_color() != style.CONTOUR
            width = line.get_linewidth() + (style.HALO_WIDTH if wide else 0.8)
            line.set_path_effects([withStroke(linewidth=width, foreground=style.HALO)])
    if panel.xticks:
        axes.set_xticks(
            [at for at, _ in panel.xticks],
            [_plain(text, 60) for _, text in panel.xticks],
            rotation=35 if crowded(panel) else 0,
            ha="right" if crowded(panel) else "center",
            rotation_mode="anchor",
        )
        axes.set_xticks([], minor=True)
    if panel.yticks:
        axes.set_yticks(
            [at for at, _ in panel.yticks], [_plain(text, 60) for _, text in panel.yticks]
        )
        axes.set_yticks([], minor=True)


def _draw_mark(
    axes: Axes,
    mark: Line | Band | Histogram | Dots | Rule | Heat,
    rules: dict[str, int],
    order: float,
    bottom: float,
) -> None:
    match mark:
        case Line(x=x, y=y):
            axes.plot(x, y, zorder=order, **_line_look(mark))
        case Band(x=x, low=low, high=high):
            axes.fill_between(x, low, high, zorder=order, **_area_look(mark.color))
        case Histogram(edges=edges, heights=heights):
            axes.bar(
                edges[:-1],
                heights - bottom,
                np.diff(edges),
                bottom=bottom,
                align="edge",
                zorder=order,
                **_bar_look(mark.color),
            )
        case Dots(x=x, y=y):
            axes.plot(x, y, zorder=order, **_dots_look(mark.color))
            _draw_intervals(axes, mark, x, order)
        case Rule(at=position, vertical=vertical):
            rule = axes.axvline if vertical else axes.axhline
            rule(position, zorder=order, **_rule_look(mark, rules))
        case Heat():
            _draw_heat(axes, mark, order)


def _draw_heat(axes: Axes, mark: Heat, order: float) -> None:
    low, high = color_range(mark)
    mesh = axes.pcolormesh(
        mark.x,
        mark.y,
        np.ma.masked_invalid(mark.values),
        cmap=ListedColormap(style.ramp(mark.diverging)),
        norm=LogNorm(low, high) if mark.log else Normalize(low, high),
        zorder=order,
        rasterized=True,  # ten thousand cells are small as pixels and huge as paths
    )
    bar = axes.figure.colorbar(mesh, ax=axes, pad=0.02)
    bar.set_label(_plain(mark.label, 38))
    bar.outline.set_visible(False)


def _draw_contour(axes: Axes, mark: Contour, panel: Panel, order: float) -> None:
    lines = iso_lines(mark, panel)
    gap = np.array([np.nan])
    x, y = (
        np.concatenate([part for line in lines for part in (getattr(line, axis), gap)] or [gap])
        for axis in ("x", "y")
    )
    axes.plot(x, y, zorder=order, **_contour_look())
    halo = withStroke(linewidth=2.0, foreground=style.HALO)
    for line in lines:
        if line.numbered:
            axes.text(
                *line.middle,
                f"{line.level:.4g}",
                fontsize=6.5,
                ha="center",
                va="center",
                color=style.INK,
                path_effects=[halo],
                zorder=order + 0.5,
                clip_on=True,
            )


def _draw_intervals(axes: Axes, mark: Histogram | Dots, at: np.ndarray, order: float) -> None:
    if mark.low is None or mark.high is None:
        return
    axes.vlines(
        at,
        mark.low,
        mark.high,
        color=style.color(mark.color),
        linewidth=style.INTERVAL_WIDTH,
        zorder=order,
    )


def _handle(mark: Listed, rules: dict[str, int]) -> Any:
    match mark:
        case Line():
            return Line2D([], [], **_line_look(mark))
        case Band():
            return Patch(**_area_look(mark.color))
        case Histogram():
            return Patch(**_bar_look(mark.color))
        case Dots():
            return Line2D([], [], **_dots_look(mark.color))
        case Rule():
            return Line2D([], [], **_rule_look(mark, rules))
        case Contour():
            return Line2D([], [], **_contour_look())


def _line_look(mark: Line) -> dict[str, Any]:
    if mark.theory:
        dashes = (0, tuple(length / style.LINE_WIDTH for length in style.THEORY_DASH))
        return {"color": style.THEORY, "linewidth": 0.8 * style.LINE_WIDTH, "linestyle": dashes}
    return {
        "color": style.color(mark.color),
        "linewidth": style.THIN_WIDTH if mark.thin else style.LINE_WIDTH,
        "alpha": style.THIN_ALPHA if mark.thin else 1.0,
    }


def _area_look(color: int) -> dict[str, Any]:
    return {"facecolor": style.color(color), "alpha": style.BAND_ALPHA, "linewidth": 0}


def _bar_look(color: int) -> dict[str, Any]:
    fill = mpl.colors.to_rgba(style.color(color), style.BAR_ALPHA)
    return {"facecolor": fill, "edgecolor": style.color(color), "linewidth": 0.8}


def _dots_look(color: int) -> dict[str, Any]:
    marker = style.MATPLOTLIB_MARKERS[color % len(style.MATPLOTLIB_MARKERS)]
    return {"color": style.color(color), "marker": marker, "markersize": 4.5, "linestyle": "none"}


def _rule_look(mark: Rule, rules: dict[str, int]) -> dict[str, Any]:
    return {
        "color": style.RULE,
        "linewidth": 1.1,
        "linestyle": (0, style.rule_dash(rules.get(mark.label, 0))),
    }


def _contour_look() -> dict[str, Any]:
    return {"color": style.CONTOUR, "linewidth": style.THIN_WIDTH}


def _plain(text: str, width: int) -> str:
    """Wrap a text and keep its dollar signs from being read as mathematics."""
    return "\n".join(textwrap.wrap(text, width)).replace("$", r"\$")
