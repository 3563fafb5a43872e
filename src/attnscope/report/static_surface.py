"""A surface drawn with Matplotlib for print."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d import Axes3D

from attnscope.report import style
from attnscope.report.figure import Surface
from attnscope.report.surfaces import drawable_surface

ELEVATION, AZIMUTH = 30, -60


def draw_surface(canvas: MatplotlibFigure, place: tuple[int, int, int], surface: Surface) -> None:
    """Draw a surface at a place ``(rows, columns, number)`` of the figure."""
    shown = drawable_surface(surface)
    data, low, high = shown.surface, shown.low, shown.high
    # The order in which things are drawn is said here: Matplotlib would hide the path behind it.
    axes: Any = canvas.add_subplot(*place, axes_class=Axes3D, computed_zorder=False)
    colors = ListedColormap(style.ramp(diverging=False))
    norm = Normalize(low, high)
    columns, rows = np.meshgrid(data.x, data.y)
    corners = np.stack([columns, rows, data.values], axis=-1)
    whole = np.isfinite(data.values)
    whole = whole[:-1, :-1] & whole[:-1, 1:] & whole[1:, :-1] & whole[1:, 1:]
    cells = np.stack(
        [corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]], axis=2
    )[whole]
    if len(cells):
        axes.add_collection3d(_polygons(cells, colors(norm(cells[:, :, 2].mean(1)))))
    axes.set(xlim=(data.x[0], data.x[-1]), ylim=(data.y[0], data.y[-1]), zlim=(low, high), zorder=1)
    if data.path is not None and len(data.path):
        x, y, z = data.path.T
        halo = withStroke(linewidth=style.LINE_WIDTH + style.HALO_WIDTH, foreground=style.HALO)
        look = {"color": style.COLORS[1], "linewidth": style.LINE_WIDTH, "path_effects": [halo]}
        axes.plot(x, y, z, zorder=10, **look)
        axes.plot(
            x[-1:], y[-1:], z[-1:], "o", zorder=11, color=style.COLORS[1], mec=style.HALO, ms=5
        )
    axes.view_init(ELEVATION, AZIMUTH)
    axes.set_title(_plain(surface.title, 46), loc="left", y=1.0)
    axes.set_xlabel(_plain(surface.xlabel, 30), labelpad=-2, fontsize=8)
    axes.set_ylabel(_plain(surface.ylabel, 30), labelpad=-2, fontsize=8)
    axes.tick_params(pad=-2, labelsize=7)
    # The corner nearest to the eye belongs to two axes; their numbers there would meet.
    axes.xaxis.set_major_locator(MaxNLocator(5, prune="upper"))
    axes.yaxis.set_major_locator(MaxNLocator(5, prune="lower"))
    axes.zaxis.set_major_locator(MaxNLocator(5))
    axes.set_zticklabels([])  # the colour bar has the numbers, and they would run into it
    axes.set_box_aspect((1, 1, 0.75), zoom=0.92)
    bar = canvas.colorbar(ScalarMappable(norm, colors), ax=axes, pad=0.13, shrink=0.7)
    label = surface.zlabel
    if data.path is not None:
        label += f"; line: {surface.path_label or 'path'}"
    bar.set_label(_plain(label, 38))
    bar.outline.set_visible(False)


def _polygons(cells: np.ndarray, colors: np.ndarray) -> Any:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    return Poly3DCollection(
        cells,
        facecolors=colors,
        edgecolors=style.INK + "30",
        linewidths=0.15,
        rasterized=True,  # thousands of cells are small as pixels and huge as paths
        zorder=2,
    )


def _plain(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width)).replace("$", r"\$")
