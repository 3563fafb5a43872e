"""The ledgers of the site: every claim is on its paper's page, and no text breaks a table."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import attnscope
from attnscope.catalogue import load, names, papers
from findings import finding
from toy_study import Bowl

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def ledger() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "ledger.py"))


def test_every_claim_is_on_the_page_of_its_paper(ledger: dict[str, Any], tmp_path: Path) -> None:
    pages = {path.stem: path.read_text() for path in ledger["write_pages"](tmp_path / "ledger")}
    assert set(pages) == {*papers(), "index"}
    for name in names():
        page = pages[name.partition(".")[0]]
        part = page.partition(f"## {name}\n")[2].partition("\n## ")[0]
        assert f"    attnscope run {name}" in part
        rows = [row for row in part.splitlines() if row.startswith("| ")][2:]
        try:
            claims = [claim for each in load(name)().claims() for claim, _ in each.expanded()]
        except attnscope.AttnscopeError:
            assert "real data" in part
            continue
        assert len(rows) == len(claims)
        for row in rows:
            assert len(re.findall(r"(?<!\\)\|", row)) == 6, row
    for paper in papers():
        assert f"\n{paper}\n" in pages["index"]


def test_kept_verdicts_are_of_studies_and_claims_that_there_are() -> None:
    kept = json.loads((DOCS / "results" / "verdicts.json").read_text(encoding="utf-8"))
    assert kept
    for name, told in kept.items():
        assert name in names()
        assert told["command"].startswith(f"attnscope run {name}")
        # No place on a computer: classes and folders of the docs may have a slash inside.
        assert not re.search(r"""(^|[\s'"=:])[/~]""", told["command"])
        try:
            claims = [claim for each in load(name)().claims() for claim, _ in each.expanded()]
        except attnscope.AttnscopeError:
            continue
        assert set(told["claims"]) & {claim.key for claim in claims}, name


def test_a_run_is_kept(
    ledger: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attnscope.run(Bowl(seeds=3), tmp_path / "run", workers=1)
    scope = ledger["keep"].__globals__
    monkeypatch.setitem(scope, "KEPT", tmp_path / "verdicts.json")
    ledger["keep"]([str(tmp_path / "run")])
    [told] = json.loads((tmp_path / "verdicts.json").read_text()).values()
    assert told["command"].startswith("attnscope run ")
    assert {each["verdict"] for each in told["claims"].values()} <= set(ledger["SYMBOLS"])


def test_a_verdict_in_words(ledger: dict[str, Any]) -> None:
    said = ledger["verdict"](finding().to_json())
    assert (
        said == "**✓ holds**: 0.0058 (0.0051 to 0.0066, 5 seeds); control 0.31, fails, as it must"
    )
    assert ledger["verdict"](None) == "not published yet"
    assert ledger["cell"]("a|b *c* <d>") == "a\\|b \\*c\\* \\<d\\>"
