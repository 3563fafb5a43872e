"""Wiki markup to prose."""

from __future__ import annotations

import pytest

from attnscope.topics.markup import plain

CASES = {
    "'''Bold''' and ''slanted''": "Bold and slanted",
    "a [[ship]] and [[Ship class|ships]]": "a ship and ships",
    "a{{cite|b={{c|{{d}}}}|e}} f": "a f",
    "a {| class=x\n| b || {{c}}\n|} d": "a  d",
    "a [[File:b.png|thumb|A [[ship|big ship]] at [[sea]]]] c": "a  c",
    "a [[Category:Ships]] [[de:Schiff]]b [[:Category:Ships]]": "a  b Category:Ships",
    "a<ref name=b>[http://x.y c]</ref> d<ref name=b /> e": "a d e",
    "a<!-- b <ref> --> c": "a c",
    "[http://x.y the site] and http://x.y/z?q=1 more": "the site and  more",
    "== Head ==\n* item\n#: other": "Head\nitem\nother",
    "E = <math>m c^2</math>, a<br/>b&nbsp;c &ndash; d": "E = , ab\xa0c – d",
    "{{open a [[ship]] b": "open a ship b",
    "a }} b |} c": "a  b  c",
    "{| {{ a |} b": "b",
    "a [[open b": "a open b",
}


@pytest.mark.parametrize("markup", CASES)
def test_prose_of_markup(markup: str) -> None:
    assert plain(markup) == CASES[markup]


def test_the_cost_is_in_step_with_the_length() -> None:
    """Pages of nothing but marks would take minutes if any rule looked back from each of them."""
    count = 20_000
    assert plain("{{" * count + "a" + "}}" * count) == ""
    assert plain("{{" * count + "a") == "a"
    assert plain("{|" * count + "a" + "}}" * count) == "a"
    assert plain("<ref>" * count + "a") == "a"
    assert plain("[[" * count + "a" + "]]" * count) == "a"
    assert plain("=" * count + "a") == "a"
    assert plain("<!--" * count) == ""
    assert plain("[http://" * count + "a") == "["
    assert plain("<a" * count) == "<a" * count
