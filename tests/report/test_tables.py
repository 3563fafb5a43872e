from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np

from attnscope.report.figure import Figure, Panel
from attnscope.report.page import Table
from attnscope.report.tables import MARK_COLUMNS, VALUE_COLUMNS, write_marks, write_table


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_table_comes_back_exactly(tmp_path: Path) -> None:
    rows = (('a, "b"\nc', 1, 0.1 + 0.2, None), ("ü<script>", -2, math.pi * 1e-300, math.nan))
    path = write_table(Table("t", "T", ("word", "n", "x", "y"), rows), tmp_path)
    back = read(path)
    assert path.name == "t.csv"
    assert [row["word"] for row in back] == ['a, "b"\nc', "ü<script>"]
    assert [float(row["x"]) for row in back] == [0.1 + 0.2, math.pi * 1e-300]
    assert [row["y"] for row in back] == ["", "nan"]


def test_marks_come_back_exactly(every_mark: Figure, tmp_path: Path) -> None:
    back = read(write_marks(every_mark, tmp_path))
    assert tuple(back[0]) == MARK_COLUMNS
    marks = [(panel, mark) for panel in every_mark.panels for mark in panel.marks]
    for number, (panel, mark) in enumerate(marks, start=1):
        rows = [row for row in back if row["series"] == str(number)]
        assert {row["panel"] for row in rows} == {panel.title}
        assert {row["mark"] for row in rows} == {type(mark).__name__.lower()}
        assert {row["label"] for row in rows} == {mark.label}
        for column, values in expected(mark).items():
            np.testing.assert_array_equal([float(row[column]) for row in rows], values)
        empty = set(VALUE_COLUMNS) - expected(mark).keys()
        assert all(row[column] == "" for row in rows for column in empty)


def test_a_heat_map_comes_back_cell_by_cell(heats: Figure, tmp_path: Path) -> None:
    back = [row for row in read(write_marks(heats, tmp_path)) if row["label"] == "loss (nats)"]
    assert {row["mark"] for row in back} == {"heat"}
    sides = [[float(row[name]) for name in ("x", "x_end", "y", "y_end", "value")] for row in back]
    assert sides == [
        [1, 10, 1, 10, 1],
        [10, 100, 1, 10, 10],
        [1, 10, 10, 100, 0],
        [10, 100, 10, 100, 1000],
    ]


def expected(mark) -> dict[str, np.ndarray]:
    if hasattr(mark, "at"):
        return {"x" if mark.vertical else "y": np.array([mark.at])}
    if hasattr(mark, "edges"):
        found = {"x": mark.edges[:-1], "x_end": mark.edges[1:], "y": mark.heights}
    else:
        found = {"x": mark.x, "y": getattr(mark, "y", None)}
    found |= {"low": getattr(mark, "low", None), "high": getattr(mark, "high", None)}
    return {name: values for name, values in found.items() if values is not None}


def test_awkward_marks_keep_what_they_are(awkward: Figure, tmp_path: Path) -> None:
    back = read(write_marks(awkward, tmp_path))
    gaps = [row["y"] for row in back if (row["panel"], row["label"]) == ("linear linear", "gap")]
    assert gaps[:5] == ["1.0", "nan", "-3.0", "inf", "4.0"]


def test_a_figure_without_marks_has_a_head_only(tmp_path: Path) -> None:
    path = write_marks(Figure("f", "", "", (Panel("", "", "", ()),)), tmp_path)
    assert path.read_text() == ",".join(MARK_COLUMNS) + "\n"
