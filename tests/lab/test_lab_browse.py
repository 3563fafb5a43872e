"""Runs are listed from what they say about themselves, and nothing else is opened."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from lab_folders import EVIL, write_run

from attnscope.errors import AttnscopeError
from attnscope.lab import entries as reading
from attnscope.lab.browse import SHOWN, run_rows, runs_page
from attnscope.lab.entries import FRESH, Kept, NotARunError, entries, entry
from findings import finding


def test_runs_are_listed_the_newest_first_with_what_came_of_them(tmp_path: Path) -> None:
    found = (finding(), finding(key="b", verdict="fails"), finding(key="c"))
    write_run(tmp_path, "old", created="2026-11-15T08:00:00+00:00", findings=found)
    write_run(tmp_path, "new", report=None, spec={"m": 5})
    (tmp_path / "empty").mkdir()
    (tmp_path / ".old.77").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    runs, others = entries(tmp_path)
    assert [run.name for run in runs] == ["new", "old"]
    assert others == ["empty"]
    new, old = runs
    assert (new.report, new.verdicts, new.spec) == (False, (), {"m": 5})
    assert (old.report, old.verdicts) == (True, ("holds", "fails", "holds"))
    assert old.findings == found
    assert old.condition == "finished"


def test_a_quoted_verdict_in_a_sentence_is_not_counted(tmp_path: Path) -> None:
    sly = finding(sentence='it says "verdict": "fails" here')
    write_run(tmp_path, "a", findings=(sly,))
    assert entry(tmp_path, "a").verdicts == ("holds",)


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"There is no folder .*runs' yet"):
        entries(tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(AttnscopeError, match="There is no folder"):
        entries(tmp_path / "file")


def test_a_run_in_place_of_a_folder_of_runs_is_a_sentence(tmp_path: Path) -> None:
    write_run(tmp_path, "demo")
    with pytest.raises(AttnscopeError, match=r"is a run itself\. Expected the folder that it lies"):
        entries(tmp_path / "demo")


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"format": 1, "stu',
        "[]",
        "null",
        "7",
        '{"format": 1}',
        '{"format": "one"}',
        '{"format": 1, "study": "a", "spec": 3, "runs": 4}',
        "\xff\xfe",
    ],
)
def test_a_half_written_run_is_listed_as_such(tmp_path: Path, text: str) -> None:
    write_run(tmp_path, "good")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "run.json").write_bytes(text.encode("latin-1"))
    runs, _ = entries(tmp_path)
    half = next(run for run in runs if run.name == "half")
    assert half.condition == "unreadable"
    assert "run.json is damaged or half written" in half.status
    assert next(run for run in runs if run.name == "good").condition == "finished"


def test_a_newer_run_says_what_to_do(tmp_path: Path) -> None:
    write_run(tmp_path, "newer", format=99)
    run = entry(tmp_path, "newer")
    assert run.condition == "unreadable"
    assert "upgrade attnscope" in run.status


def test_links_out_of_the_folder_are_named_and_not_read(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "else", "where")
    root = tmp_path / "runs"
    write_run(root, "sly", report=None)
    (root / "sly" / "run.json").unlink()
    (root / "sly" / "run.json").symlink_to(outside / "run.json")
    (root / "out").symlink_to(outside)
    (root / "twice").symlink_to(write_run(root, "one"))
    runs = {run.name: run for run in entries(root)[0]}
    assert {name: run.condition for name, run in runs.items()} == {
        "sly": "unreadable",
        "out": "unreadable",
        "one": "finished",
        "twice": "finished",
    }
    assert "leads out of the runs folder" in runs["sly"].status
    assert "leads out of the runs folder" in runs["out"].status


def test_whether_a_run_is_still_going(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "a", status="not begun")
    assert entry(tmp_path, "a").condition == "going"  # just made
    state = folder / "runs" / "0000.json"
    state.parent.mkdir()
    state.write_text(json.dumps({"outcome": "running", "recorded": {"step": 3}}))
    long_ago = time.time() - FRESH - 5
    os.utime(folder / "run.json", (long_ago, long_ago))
    assert entry(tmp_path, "a").condition == "going"
    os.utime(state, (long_ago, long_ago))
    run = entry(tmp_path, "a")
    assert (run.condition, run.status) == ("unfinished", "0 of 2 runs are complete")
    for index in range(2):
        path = state.with_name(f"{index:04d}.json")
        path.write_text(json.dumps({"outcome": "finished"}))
    assert entry(tmp_path, "a").status == "finished: all 2 runs are complete"


def test_what_was_read_before_is_read_again_only_if_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path, "a")
    write_run(tmp_path, "b", status="0 of 2 runs are complete")
    kept: Kept = {}
    entries(tmp_path, kept)
    read: list[str] = []
    real = reading._read

    def noted(root: Path, path: Path) -> reading.Entry:
        read.append(path.name)
        return real(root, path)

    monkeypatch.setattr(reading, "_read", noted)
    entries(tmp_path, kept)
    assert read == ["b"]  # not finished, so it may have gone on
    (tmp_path / "a" / "findings.json").write_text(json.dumps([{"verdict": "holds"}]))
    runs, _ = entries(tmp_path, kept)
    assert sorted(read) == ["a", "b", "b"]
    assert next(run for run in runs if run.name == "a").verdicts == ("holds",)
    os.rename(tmp_path / "a", tmp_path.parent / f"{tmp_path.name}-a")
    assert [run.name for run in entries(tmp_path, kept)[0]] == ["b"]
    assert "a" not in kept


def test_names_of_runs_and_words_of_data_are_text(tmp_path: Path) -> None:
    name = EVIL.replace("/", "")
    write_run(tmp_path, name, study=EVIL, spec={"word": EVIL}, status=f"finished: {EVIL}")
    write_run(tmp_path, "b", study=EVIL, spec={"word": "plain"}, created=EVIL)
    (tmp_path / f"{name}x").mkdir()
    page = runs_page(Path(EVIL), *entries(tmp_path))
    assert "<img" not in page
    assert "<script" not in page
    assert "%3Cimg%20src%3Dx%20onerror%3D%27window.hit%20%3D%201%27%3E" in page


def test_a_folder_without_a_manifest_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotARunError, match=r"'empty' is not a run: there is no run\.json"):
        entry(tmp_path, "empty")
    with pytest.raises(AttnscopeError, match="There is no 'gone'"):
        entry(tmp_path, "gone")
    assert "There is no run in" in runs_page(tmp_path, *entries(tmp_path))


def test_a_thousand_runs_need_no_trajectory(tmp_path: Path) -> None:
    for index in range(1000):
        write_run(tmp_path, f"run-{index:04d}", report=None, spec={"m": index % 7})
    runs, _ = entries(tmp_path)
    assert len(runs) == 1000
    page = runs_page(tmp_path, runs, ())
    assert page.count("<tr>") == SHOWN + 1  # and the head
    assert "Show all 1,000" in page
    rest = run_rows(runs, runs[SHOWN:], hidden=True)
    assert rest.count("<tr hidden>") == 1000 - SHOWN
    assert runs_page(tmp_path, runs, (), whole=True).count("<tr>") == 1001
