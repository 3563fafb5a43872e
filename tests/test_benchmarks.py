"""The table of benchmarks: what counts as moved, and that the docs show what is published."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command and the harness, importable as they are when they run."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import publish
    import run

    yield run, publish
    for name in ("run", "publish", "harness"):
        sys.modules.pop(name, None)


def test_a_quarter_up_or_down_is_not_moved_and_more_is(programs: Any) -> None:
    run, _ = programs
    assert not run.moved(100.0, 80.0)
    assert run.moved(100.1, 80.0)
    assert not run.moved(60.0, 80.0)
    assert run.moved(59.9, 80.0)
    assert not run.moved(None, 80.0)
    assert not run.moved(80.0, None)


def test_a_row_that_cannot_be_measured_says_why_and_costs_the_others_nothing(programs: Any) -> None:
    run, _ = programs
    harness = sys.modules["harness"]

    def row(error: Exception | None) -> dict[str, Any]:
        def measure() -> Any:
            if error is not None:
                raise error
            return harness.Measured(6.0, 2.0, "", (2.0, 3.0, 7.0))

        found: dict[str, Any] = run.measured(harness.Row("a.b", "what", "them", "limit", measure))
        return found

    assert row(None)["ratio"] == 3.0
    assert row(harness.Skip("no data."))["how"] == "skipped: no data."
    assert row(ImportError("No module named 'nnsight'"))["ratio"] is None
    assert row(ValueError("oh"))["how"] == "failed: ValueError: oh"


def test_the_docs_show_the_published_table(programs: Any) -> None:
    run, publish = programs
    rows = json.loads(run.PUBLISHED.read_text(encoding="utf-8"))["rows"]
    assert publish.markdown(rows) in publish.DOCS.read_text(encoding="utf-8")
    assert {row["name"].split(".")[0] for row in rows} <= set(run.PROGRAMS)
    assert len({row["name"] for row in rows}) == len(rows)
