"""Rows of different lengths, one after another."""

from __future__ import annotations

import numpy as np

from attnscope.probes.lexicon.cells import Cells


def test_cells_are_rows_one_after_another() -> None:
    cells = Cells([2, 3, 1])
    assert cells.count == 6
    assert cells.padded(np.arange(6.0))[1].tolist() == [2.0, 3.0, 4.0]
    assert cells.row(1) == slice(2, 5)
    assert [len(cells.prefix(n)) for n in (0, 1, 2, 4, 5, 6)] == [0, 0, 1, 1, 2, 3]


def test_places_are_those_of_the_rows() -> None:
    cells = Cells([2, 3, 1])
    values, rows = np.arange(6.0), np.array([1, 0, 2])
    expected = np.concatenate([values[cells.row(int(row))] for row in rows])
    assert np.array_equal(values[cells.places(rows)], expected)
