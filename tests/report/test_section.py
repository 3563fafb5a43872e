from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.report import Page, Section, ShadedText, Table, publish


def section(**given: object) -> Section:
    parts: dict[str, object] = {
        "name": "words",
        "title": "Words & marks",
        "sentences": ("A <b> sentence.",),
        "shaded": (ShadedText(("good", "<film>"), np.array([0.8, 0.2]), "label: 1"),),
        "shaded_title": "Shaded",
        "tables": (Table("words", "Words", ("word",), (("good",),)),),
    }
    return Section(**{**parts, **given})  # type: ignore[arg-type]


def test_a_page_shows_sections_first_and_escapes_what_comes_from_data(tmp_path) -> None:
    page = Page("title", "summary", "status", sections=(section(),))
    text = publish(tmp_path, page).read_text()
    assert '<h2 id="words">Words &amp; marks</h2>' in text
    assert "A &lt;b&gt; sentence." in text
    assert "&lt;film&gt;" in text
    assert "<film>" not in text
    assert "--shade:1.00" in text
    assert "--shade:0.25" in text
    assert (tmp_path / "tables" / "words.csv").read_text() == "word\ngood\n"


def test_names_of_tables_are_unique_over_all_sections() -> None:
    with pytest.raises(AttnscopeError, match="Two tables are named 'words'"):
        Page("t", "s", "s", sections=(section(), section(name="other")))
    with pytest.raises(AttnscopeError, match="section name 'a b'"):
        section(name="a b")


def test_weights_are_one_number_for_each_word() -> None:
    with pytest.raises(AttnscopeError, match="for the 2 words 'a b'"):
        ShadedText(("a", "b"), np.array([1.0]))
    with pytest.raises(AttnscopeError, match="has the weight -1"):
        ShadedText(("a", "b"), np.array([1.0, -1.0]))
    assert ShadedText(("a", "b"), np.zeros(2)).shades.tolist() == [0.0, 0.0]
    assert ShadedText((), np.zeros(0)).shades.size == 0
