"""Several theories on one axis: what begins when, and what is drawn."""

from __future__ import annotations

import numpy as np

from attnscope.experiment.one_axis import (
    Curve,
    happenings,
    one_axis,
    speaking,
    speaking_table,
    worth_while,
)
from attnscope.report.figure import Line, Rule

STEPS = np.array([0, 10, 20, 30])


def heads(*layers: list[float]) -> Curve:
    """Return a reading of layers of two heads, the second of which is never ahead."""
    values = np.array(layers).T
    return STEPS, np.stack([values, 0.0 * values], axis=-1)


def test_each_theory_speaks_where_its_reading_passes_its_level() -> None:
    curves: dict[str, Curve] = {
        "distance_to_uniform": heads([0.0, 0.04, 0.06, 0.2], [0.1, 0.2, 0.3, 0.4]),
        "mass_previous": heads([0.1, 0.1, 0.2, 0.31], [0.1, 0.1, 0.1, 0.1]),
        "induction": heads([0.0, 0.0, 0.0, 0.0], [0.0, 0.6, 0.6, 0.6]),
        "rank_growth": (STEPS, np.array([np.nan, 1.0, 2.1, 3.0])[:, None, None, None] * [1, 9]),
        "entropy": (STEPS, np.array([3.0, 2.0, 1.0, 0.5])[:, None, None]),
        "entropy_floor": (STEPS, np.array([3.0, 2.0, 0.2, 0.1])[:, None, None]),
    }
    found = [(each.step, each.words, each.theory) for each in happenings(curves)]
    assert found == [
        (10, "layer 1 has an induction head", "aoyama2025"),
        (20, "attention of layer 0 begins", "li2023"),
        (20, "collapse of layer 0 is not ruled out", "zhai2023"),
        (30, "layer 0 looks back", "edelman2024"),
    ]
    # Layer 1 was not uniform at the first reading: that has no beginning.
    assert [row[0] for row in speaking_table(happenings(curves, 1)).rows] == [10, 20, 20, 30]
    figure = one_axis(curves, 1)
    assert len(figure.panels) == 5
    rank = figure.panels[3]
    lines = [mark for mark in rank.marks if isinstance(mark, Line)]
    assert [line.label for line in lines] == ["layer 1", "W_O W_V, layer 1"]
    np.testing.assert_allclose(lines[1].y[1:], [9.0, 18.9, 27.0])
    rules = [mark for mark in figure.panels[0].marks if isinstance(mark, Rule)]
    assert [rule.label for rule in rules] == ["attention of layer 1 begins"]


def test_usual_recordings_are_left_as_they_are() -> None:
    usual = {name: heads([0.0] * 4) for name in ("entropy", "mass_previous", "onset_distance")}
    assert len(speaking(usual)) == 3
    assert not worth_while(usual)
    assert worth_while({**usual, "entropy_floor": heads([0.0] * 4)})
    assert not worth_while({"entropy_floor": heads([0.0] * 4), "entropy": heads([0.0] * 4)})


def test_a_layer_without_heads_and_a_reading_without_numbers_say_nothing() -> None:
    nothing = np.full((4, 2, 2), np.nan)
    nothing[:, 0, 0] = [0.0, 0.1, 0.2, 0.3]
    curves: dict[str, Curve] = {
        "distance_to_uniform": (STEPS, nothing),
        "rank_growth": (STEPS, np.full((4, 1, 1, 2), np.nan)),
    }
    assert [each.words for each in happenings(curves)] == ["attention of layer 0 begins"]
    assert one_axis(curves).panels
