"""The section of running text that says when attention will start."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

from attnscope.datasets.kinds import DocumentSet
from attnscope.prediction import onset, predict, when_text
from attnscope.prediction.asked import AskedText
from attnscope.prediction.when_text import FEWEST, when_text_section
from attnscope.report import Section


def texts(count: int = 60) -> list[str]:
    dice = np.random.default_rng(0)
    topics = [[f"{name}{end}" for end in ("one", "two", "three", "four")] for name in "pqrs"]
    found = []
    for _ in range(count):
        first, second = dice.choice(4, 2, replace=False)
        found.append(" ".join(dice.choice(topics[first] + topics[second], 24)))
    return found


def section(given: list[str]) -> Section:
    return when_text_section(AskedText(DocumentSet("mine", {"train": given})))


def test_the_page_says_when_with_an_interval_and_what_it_does_not_speak_of(tmp_path: Path) -> None:
    heard: list[str] = []
    said = predict(
        DocumentSet("mine", {"train": texts()}), tell=lambda what, done, total: heard.append(what)
    )
    made = said.section("when-text")
    first = made.sentences[0]
    assert "attention starts at t = " in first
    assert "step" in first
    assert any("nothing of Adam" in each for each in made.sentences)
    (table,) = made.tables
    assert [row[0] for row in table.rows] == ["0.02", "0.01", "0.001", "0.0001"]
    times = [float(str(row[1]).replace(",", "")) for row in table.rows]
    assert times == sorted(times)
    # Descent at a finite rate is later than the flow.
    steps = float(str(table.rows[2][4]).replace(",", ""))
    assert steps * onset.RATE > 0.97 * times[2]
    assert any(what.startswith("letting values flow") for what in heard)
    assert "When attention will start" in said.write_report(tmp_path).read_text()


def test_too_few_texts_say_how_many_are_needed() -> None:
    made = section(texts(10))
    assert made.sentences[0].startswith("Cannot tell: 10 texts have 240 content words")
    assert f"about {FEWEST} such texts are needed" in made.sentences[0]
    assert not made.tables


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["word " * 2000], "and 10 different words"),
        (["the of and"], "have 0 content words"),
        (["我们在公园里散步然后回家吃饭看书睡觉。" * 3] * 50, "Cannot tell: 50 texts"),
        (
            [" ".join(text.split()[:3]) for text in texts(100)],
            "longer texts, in which words come again",
        ),
    ],
)
def test_what_cannot_be_told_is_said(given: list[str], expected: str) -> None:
    made = section(given)
    assert made.sentences[0].startswith("Cannot tell: ")
    assert expected in made.sentences[0]


def test_no_onset_is_said_with_the_time_that_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onset, "FIRST", 200.0)
    monkeypatch.setattr(onset, "LAST", 200.0)
    made = section(texts())
    assert "no onset before t = 200 " in made.sentences[0]
    assert made.tables[0].rows[2][1] == "none before 200"


def test_the_numbers_of_the_docstring() -> None:
    assert doctest.testmod(when_text).failed == 0
