"""How things look, said once for both renderers.

The colours are those of Okabe and Ito (2008, "Color Universal Design"), which people with any of
the common kinds of colour blindness can tell apart, in an order that puts the colours of best
contrast on white first. Colour never stands alone: dots differ in shape as well, theory is dashed.
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
THEORY = "#1A1A1A"
RULE = "#6B6B6B"
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


def color(index: int) -> str:
    """Return the palette's colour number ``index``, starting over after the last."""
    return COLORS[index % len(COLORS)]


def rule_dash(index: int) -> tuple[float, ...]:
    """Return the dash pattern of the figure's rule number ``index``."""
    return RULE_DASHES[index % len(RULE_DASHES)]
