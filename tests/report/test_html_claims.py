"""Claims folded by the parts of a paper, in text and in a browser."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest

from attnscope.report import Figure, Page, publish
from attnscope.report.html_claims import claims, part_of, verdict
from chromium import chromium
from findings import finding

EVIL = "<img src=x onerror=alert(1)> & \"'"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("Theorem 1, eq (9)", "Theorem 1"),
        ("Theorem 3.1 as printed", "Theorem 3.1"),
        ("Theorem 3's loss, eqs (F.22) to (F.26)", "Theorem 3"),
        ("Theorem 2 and its proof", "Theorem 2"),
        ("section 4.1, for d → ∞", "Section 4.1"),
        ("sections 1 and 3: knowledge drives attention", "Sections 1 and 3"),
        ("Figs 1, 2, 9 and 10", "Figs 1, 2, 9 and 10"),
        ("appendix A.3", "Appendix A.3"),
        ("beyond the paper: eqs (7) and (10)", "Beyond the paper"),
        ("", "Other claims"),
        (", odd", ", odd"),
    ],
)
def test_a_source_begins_with_a_part_of_the_paper(source: str, part: str) -> None:
    assert part_of(source) == part


def test_parts_are_folded_and_keep_their_order() -> None:
    found = [
        finding(key="a", source="Theorem 2"),
        finding(key="b", source="Lemma 1, eq (3)"),
        finding(key="c", source="Theorem 2, eq (4)", verdict="undecided", sentence="It is open."),
    ]
    first, second = claims(found).split("<details")[1:]
    summary, rows = first.split("</summary>")
    assert "Theorem 2" in summary
    assert "1 of 2 claims hold, 1 undecided" in summary
    assert "? undecided</span> It is open." in summary
    assert "follows" not in summary  # what holds is told inside
    assert 'id="claim-a"' in rows
    assert 'id="claim-c"' in rows
    assert 'id="claim-b"' in second
    assert " open>" not in first + second
    assert '<details class="card claims" open>' in claims(found[:1])


def test_no_word_of_a_claim_becomes_markup() -> None:
    words = dict.fromkeys(("key", "sentence", "source", "paper", "criterion", "reason"), EVIL)
    text = claims([finding(**words, verdict="fails", control_fails=False)])
    assert "<img" not in text
    assert unescape(text).count(EVIL) == 6 + 1  # the sentence is in the folded line too
    assert "CONTROL PASSES" in text.partition("</summary>")[0]


def test_nothing_is_said_without_claims() -> None:
    assert verdict([]) == claims([]) == ""


def test_links_and_paper_open_what_is_folded(every_mark: Figure, tmp_path: Path) -> None:
    found = [finding(key=f"c{n}", source=f"Theorem {n}") for n in range(8)]
    path = publish(tmp_path / "out", Page("S", "s", "ok", found, [every_mark]))
    count = "return document.querySelectorAll('details.claims[open]').length"
    with chromium(tmp_path / "profile") as browser:
        browser.get(path.as_uri() + "#claim-c5")
        assert browser.execute_script(count) == 1
        assert browser.find_element("id", "claim-c5").is_displayed()
        browser.execute_script("dispatchEvent(new Event('beforeprint'))")
        assert browser.execute_script(count) == 8
        browser.execute_script("dispatchEvent(new Event('afterprint'))")
        assert browser.execute_script(count) == 1
        button = browser.find_element("css selector", "button[data-unfold]")
        browser.execute_script("arguments[0].click()", button)
        assert browser.execute_script(count) == 8
        browser.execute_script("arguments[0].click()", button)
        assert browser.execute_script(count) == 0
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert not button.is_displayed()
