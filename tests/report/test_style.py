from __future__ import annotations

import itertools

from attnscope.report import style


def luminance(color: str) -> float:
    """Relative luminance as in WCAG 2."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_colors_differ_and_start_over() -> None:
    count = len(style.COLORS)
    assert len({style.color(i) for i in range(count)}) == count
    assert style.color(count) == style.color(0)


def test_theory_is_darker_than_every_measured_color() -> None:
    assert all(luminance(style.THEORY) < luminance(color) / 4 for color in style.COLORS)


def test_every_color_has_a_shape_of_its_own() -> None:
    for markers in (style.BOKEH_MARKERS, style.MATPLOTLIB_MARKERS):
        assert len(set(markers)) == len(style.COLORS)


def test_rules_differ_in_their_dashes() -> None:
    patterns = [style.rule_dash(i) for i in range(len(style.RULE_DASHES))]
    assert all(a != b for a, b in itertools.combinations(patterns, 2))


def test_heat_maps_go_by_lightness() -> None:
    rising = [luminance(color) for color in style.ramp(diverging=False)]
    assert all(a < b for a, b in itertools.pairwise(rising[::8]))
    lights = [luminance(color) for color in style.ramp(diverging=True)]
    low, high = lights[:128:8], lights[:127:-8]
    assert all(a < b for side in (low, high) for a, b in itertools.pairwise(side))
    assert lights.index(max(lights)) in (127, 128)


def test_a_ramp_meets_its_anchors() -> None:
    assert style.ramp(diverging=True, size=7) == list(style.DIVERGING)
    assert style.ramp(diverging=False, size=9) == list(style.SEQUENTIAL)
