"""The section on when attention comes, as part of a prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.prediction.when import how_timely, timing_table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dice = np.random.default_rng(0)
    lines = ["label,text"]
    for label in dice.integers(0, 3, 600):
        words = [f"w{i}" for i in dice.integers(0, 40, 6)]
        words.insert(int(dice.integers(0, 7)), ("poor", "fine", "fair")[label])
        lines.append(f"{('bad', 'good', 'so-so')[label]},{' '.join(words)}")
    path = tmp_path_factory.mktemp("when") / "toy.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_it_says_steps_with_intervals_for_both_optimizers(table: Path) -> None:
    section = attnscope.predict(table).section("when")
    assert "SGD at rate 12.5" in section.sentences[0]
    assert "attention starts at step" in section.sentences[0]
    assert "is half way at step" in section.sentences[0]
    assert any("the two largest classes" in said for said in section.sentences)
    rows = section.tables[0].rows
    assert {row[1] for row in rows} == {"SGD", "Adam"}
    for row in rows:
        assert (row[6] is None) == (row[7] == "not known")
        assert row[0] != "Lu 2021" or row[4] < row[6] <= row[3]
    assert section.figures[0].panels


def test_without_the_words_that_tell_it_comes_later(table: Path) -> None:
    own = attnscope.predict(table, classes=("bad", "good")).section("when").tables[0].rows[0][6]
    less = attnscope.predict(table, classes=("bad", "good"), without=("poor",))
    assert less.section("when").tables[0].rows[0][6] > own


def test_where_no_word_says_anything_no_time_is_told(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    rows = [
        f"{'ab'[label]},{' '.join(f'w{i}' for i in dice.integers(0, 30, 6))}"
        for label in dice.integers(0, 2, 200)
    ]
    path = tmp_path / "noise.csv"
    path.write_text("\n".join(["label,text", *rows]), encoding="utf-8")
    section = attnscope.predict(path).section("when")
    assert section.sentences[0].startswith("Cannot tell")
    assert not section.tables


def test_every_measured_set_is_listed() -> None:
    rows = timing_table().rows
    assert {"fitted on", "judged on"} <= {row[2] for row in rows}
    assert "one step for all sets" in how_timely()
