"""The ledger gathers a claim over all runs, and finds the way to its figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_folders import EVIL, REPORT, write_run

from attnscope.lab.entries import entries
from attnscope.lab.ledger import figure_of, ledger_page, rows
from findings import finding


def test_a_claim_is_one_row_over_all_runs_the_newest_first(tmp_path: Path) -> None:
    write_run(tmp_path, "old", created="2026-01-01", findings=(finding(verdict="fails"),))
    write_run(tmp_path, "new", findings=(finding(), finding(key="other")))
    write_run(tmp_path, "cnn", study="lu2021.cnn", findings=(finding(key="cnn"),), report=None)
    table = rows(entries(tmp_path)[0])
    assert [(row.study, row.found[0][1].key) for row in table] == [
        ("lu2021.cnn", "cnn"),
        ("lu2021.sen", "sen"),
        ("lu2021.sen", "other"),
    ]
    assert [(run.name, each.verdict) for run, each in table[1].found] == [
        ("new", "holds"),
        ("old", "fails"),
    ]
    page = ledger_page(entries(tmp_path)[0])
    assert "3 of 3 claims hold" in page
    assert '<a href="/runs/new/figure?claim=sen">' in page
    assert '<a href="/runs/new/#claim-sen">' in page
    assert '<a href="/runs/old/#claim-sen">old</a>' in page
    assert '<a href="/live/cnn">cnn</a>' in page  # it has no report


def test_a_folder_without_claims_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, "a")
    assert "No run has decided a claim yet" in ledger_page(entries(tmp_path)[0])


def test_words_of_claims_are_text(tmp_path: Path) -> None:
    evil = finding(key=EVIL, sentence=EVIL, source=EVIL, reason=EVIL, paper=EVIL, criterion=EVIL)
    write_run(tmp_path, "a", study=EVIL, findings=(evil,))
    page = ledger_page(entries(tmp_path)[0])
    assert "<img" not in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("claim", "figure"),
    [
        (finding(source="Fig. 2"), "fig2-sen"),
        (finding(key="test", sentence="All sentences are classified rightly."), "accuracy"),
        (finding(key="norm", sentence="The norm of every topic word grows."), "fig2-sen"),
        (finding(key="accuracy", sentence="It does well.", source="Figure 2"), "fig2-sen"),
    ],
)
def test_the_figure_of_a_claim_is_the_one_that_speaks_of_it(claim: object, figure: str) -> None:
    assert figure_of(REPORT, claim) == figure  # type: ignore[arg-type]


def test_a_report_without_figures_has_none_to_go_to() -> None:
    assert figure_of("<html></html>", finding()) is None
    # What never ends is cut, and not looked through once for every beginning.
    assert figure_of('<figure class="card" id="figure-a"><h3>' * 100_000, finding()) == "a"
