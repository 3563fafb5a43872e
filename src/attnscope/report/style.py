"""How things look, said once for both renderers.

The colours are those of Okabe and Ito (2008, "Color Universal Design"), which people with any of
the common kinds of colour blindness can tell apart, in an order that puts the colours of best
contrast on white first. Colour never stands alone: dots differ in shape as well, theory is dashed.
Heat maps go by lightness, which everybody sees: viridis (van der Walt and Smith, 2015), and from
the palette's blue over white to its vermilion for values of either sign.
"""

from __future__ import annotations

COLORS = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#F0E442",  # yellow
)
SEQUENTIAL = (
    "#440154",
    "#472D7B",
    "#3B528B",
    "#2C728E",
    "#21918C",
    "#28AE80",
    "#5EC962",
    "#ADDC30",
    "#FDE725",
)
DIVERGING = ("#003A5C", "#0072B2", "#7FB9DA", "#F4F4F4", "#F0A570", "#D55E00", "#6E2C00")
THEORY = "#1A1A1A"
RULE = "#6B6B6B"
CONTOUR = "#333333"
INK = "#222222"
GRID = "#E4E4E4"

BOKEH_MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "plus")
MATPLOTLIB_MARKERS = ("o", "s", "^", "D", "v", "h", "P")

THEORY_DASH = (6.0, 4.0)
RULE_DASHES = ((1.5, 2.5), (6.0, 2.0, 1.5, 2.0), (9.0, 3.0), (3.0, 2.0))

LINE_WIDTH = 1.8
THIN_WIDTH = 0.8
THIN_ALPHA = 0.6
BAND_ALPHA = 0.22
BAR_ALPHA = 0.35
INTERVAL_WIDTH = 1.3
HALO = "#FFFFFF"
HALO_WIDTH = 2.4
"""Added to the width of lines over a heat map, whose colours may be theirs."""


def color(index: int) -> str:
    """Return the palette's colour number ``index``, starting over after the last."""
    return COLORS[index % len(COLORS)]


def ramp(diverging: bool, size: int = 256) -> list[str]:
    """Return the colours of a heat map from the lowest value to the highest."""
    anchors = DIVERGING if diverging else SEQUENTIAL
    last = len(anchors) - 1
    colors = []
    for step in range(size):
        place = last * step / (size - 1)
        left = min(int(place), last - 1)
        share = place - left
        ends = zip(_channels(anchors[left]), _channels(anchors[left + 1]), strict=True)
        colors.append("#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in ends))
    return colors


def _channels(text: str) -> list[int]:
    return [int(text[at : at + 2], 16) for at in (1, 3, 5)]


def rule_dash(index: int) -> tuple[float, ...]:
    """Return the dash pattern of the figure's rule number ``index``."""
    return RULE_DASHES[index % len(RULE_DASHES)]
