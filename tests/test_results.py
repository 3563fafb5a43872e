"""From a trajectory to its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import xarray as xr

import attnscope
from attnscope.claims import Finding
from attnscope.errors import AttnscopeError
from attnscope.results import keep_findings, page_of
from toy_study import Bowl


@pytest.fixture
def tree(tmp_path: Path) -> xr.DataTree:
    return attnscope.run(Bowl().but(engine="descent"), tmp_path / "run", workers=1)


def test_the_page_says_what_was_done(tree: xr.DataTree) -> None:
    page = page_of(tree)
    assert page.title == "Bowl"
    assert page.summary.startswith(
        "A study of one's own: two quadratic bowls, small enough to know everything about. 4 runs "
        "(2 cases, 2 seeds) of 300 epochs by gradient descent."
    )
    assert page.status == "finished: all 4 runs are complete"
    assert [f.key for f in page.findings] == ["decay"]
    assert [f.name for f in page.figures] == ["decay"]
    assert page.spec == Bowl().but(engine="descent").to_json()
    assert page.command == "attnscope run toy_study:Bowl --engine descent"
    assert page.provenance["gradients computed"] == 4 * 300
    assert page.provenance["seeds"] == 2


def test_the_report_goes_to_the_runs_own_folder(tree: xr.DataTree, tmp_path: Path) -> None:
    path = attnscope.write_report(tree)
    assert path == tmp_path / "run" / "report.html"
    kept = json.loads((tmp_path / "run" / "findings.json").read_text())
    assert [Finding(**entry) for entry in kept] == attnscope.findings(tree)


def test_or_where_it_is_told_to(tree: xr.DataTree, tmp_path: Path) -> None:
    assert attnscope.write_report(tree, tmp_path / "there") == tmp_path / "there" / "report.html"
    assert (tmp_path / "there" / "findings.json").exists()
    assert not (tmp_path / "run" / "report.html").exists()


def test_findings_are_not_decided_twice(tree: xr.DataTree, monkeypatch: pytest.MonkeyPatch) -> None:
    found = keep_findings(tree)

    def never(*_: object) -> None:
        raise AssertionError("decided again")

    monkeypatch.setattr("attnscope.results.findings", never)
    assert attnscope.write_report(tree, found=found).exists()


def test_a_trajectory_without_a_folder_needs_one(tree: xr.DataTree) -> None:
    del tree.attrs["path"]
    with pytest.raises(AttnscopeError, match="expected out=FOLDER"):
        attnscope.write_report(tree)
