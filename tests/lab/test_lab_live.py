"""A run that is going: its own figures over the seeds that are complete, and all curves so far."""

from __future__ import annotations

import dataclasses
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from lab_folders import write_run
from torch import nn

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.lab.curves import POINTS, courses, line
from attnscope.lab.entries import entry
from attnscope.lab.live import fingerprint, own_part, prefix, progress_figure, scene, stamp
from attnscope.report.figure import Figure, Line, Panel
from attnscope.studies.lu2021.sen import Sen
from attnscope.trajectory import RunFolder, open_run, write_json

SMALL = Sen(seeds=2, epochs=60, points=7, dictionary=30, train=24, test=8, m=4, dim=5)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    attnscope.run(SMALL, made / "whole", workers=1)
    return made


def halve(folder: Path, done: int) -> None:
    """Make a finished run look as it did when ``done`` of its runs were complete."""
    paths = RunFolder(folder)
    manifest = paths.manifest()
    write_json(paths.manifest_path, {**manifest, "status": "not begun"})
    for index in range(done, len(manifest["runs"])):
        paths.write_state(index, {})


@pytest.fixture
def half(root: Path, tmp_path: Path) -> Path:
    shutil.copytree(root / "whole", tmp_path / "half")
    halve(tmp_path / "half", len(SMALL.cases) + 1)
    return tmp_path


def test_the_first_seeds_of_a_run_are_the_same_study_with_fewer(root: Path, half: Path) -> None:
    tree = open_run(half / "half")
    found = prefix(SMALL, tree)
    assert found is not None
    part, first = found
    assert part == dataclasses.replace(SMALL, seeds=1)
    alone = attnscope.run(part, half / "alone", workers=1)
    for group in ("observables", "theory"):
        xr.testing.assert_allclose(first[group].to_dataset(), alone[group].to_dataset())
    whole = open_run(root / "whole")
    assert prefix(SMALL, whole) == (SMALL, whole)


def test_without_a_complete_seed_there_are_curves_alone(half: Path) -> None:
    halve(half / "half", 1)
    assert prefix(SMALL, open_run(half / "half")) is None
    words, so_far = scene(half, "half", frozenset())
    assert words["going"] is True
    assert words["verdicts"] == []
    assert words["figures"] == ["so-far"]
    assert "as soon as the first seed is complete" in words["notes"][0]
    assert "1 of 8 runs are complete" in words["words"]
    assert so_far["title"] == "So far"


def test_what_the_page_has_is_not_drawn_again(half: Path) -> None:
    words, *figures = scene(half, "half", frozenset())
    assert [each["figure"] for each in figures] == words["figures"]
    assert words["figures"][0] == "so-far"  # what moves stands first
    assert "1 of 2 seeds" in words["notes"][0]
    assert len(words["verdicts"]) == sum(len(c.expanded()) for c in SMALL.claims())
    assert all("item" in each for each in figures)
    have = frozenset(each["print"] for each in figures)
    _, *again = scene(half, "half", have)
    assert [each["print"] for each in again] == [each["print"] for each in figures]
    assert not any("item" in each for each in again)


def test_the_stamp_changes_with_what_a_run_says(half: Path) -> None:
    before = stamp(half, "half")
    assert stamp(half, "half") == before
    RunFolder(half / "half").state_path(7).write_text("{}")
    assert stamp(half, "half") != before


def test_curves_are_what_was_recorded(root: Path) -> None:
    tree = open_run(root / "whole")
    data = tree["observables"].to_dataset()
    found = courses(tree)
    assert next(iter(found)) == "loss"
    np.testing.assert_array_equal(found["loss"].values, data["loss"].values)
    np.testing.assert_array_equal(found["loss"].time, np.arange(7) * 10.0)
    assert found["loss"].axis == "step"
    score = found["score"]
    np.testing.assert_allclose(score.values, data["score"].values.astype(float).mean(axis=2))
    assert "mean over word" in score.label


def test_a_curve_ends_where_the_run_has_come_to(root: Path) -> None:
    course = courses(open_run(root / "whole"))["loss"]
    values = course.values.copy()
    values[0, 4:] = np.nan
    drawn = line(dataclasses.replace(course, values=values), 0, "a", 2)
    np.testing.assert_array_equal(drawn.x, course.time[:4])
    np.testing.assert_array_equal(drawn.y, course.values[0, :4])
    values[:] = np.nan
    assert line(dataclasses.replace(course, values=values), 0, "a", 2).x.size == 0
    time = np.arange(10_000.0)
    long = dataclasses.replace(course, time=time, values=time[None])
    drawn = line(long, 0, "a", 0)
    assert drawn.x.size == POINTS
    assert (drawn.x[0], drawn.x[-1]) == (0.0, 9999.0)
    np.testing.assert_array_equal(drawn.x, drawn.y)


def test_progress_has_a_line_for_each_run_and_a_colour_for_each_case(root: Path) -> None:
    figure = progress_figure(open_run(root / "whole"))
    lines = figure.panels[0].marks
    assert len(lines) == 8
    cases = SMALL.cases
    assert [(each.label, each.color) for each in lines] == [
        (case, cases.index(case)) for case, _ in SMALL.runs()
    ]


def test_a_manifest_cannot_choose_what_is_imported(half: Path) -> None:
    folder = RunFolder(half / "half")
    manifest = {**folder.manifest(), "study": "antigravity:fly"}
    write_json(folder.manifest_path, manifest)
    own = own_part(open_run(half / "half"), entry(half, "half"))
    assert own.figures == ()
    assert "not one of attnscope's own" in own.notes[0]


def test_a_run_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    write_run(tmp_path, "bare")
    with pytest.raises(AttnscopeError, match=r"trajectory\.zarr' is gone"):
        list(scene(tmp_path, "bare", frozenset()))
    (tmp_path / "bare" / "trajectory.zarr").symlink_to("/etc")
    with pytest.raises(AttnscopeError, match="leads out of the runs folder"):
        list(scene(tmp_path, "bare", frozenset()))
    (tmp_path / "bare" / "run.json").write_text("{")
    with pytest.raises(AttnscopeError, match="'bare' cannot be read"):
        list(scene(tmp_path, "bare", frozenset()))


def test_a_watched_model_is_drawn_while_it_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnscope.watching.scope.FLUSH", 0.0)
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    batch = torch.randn(4, 5, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attnscope.watch(model, tmp_path / "mine", record=["loss"], every=1) as watched:
        for _ in range(5):
            out, _ = model(batch, batch, batch)
            loss = out.square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watched.step(loss)
        words: dict[str, Any] = {}
        for _ in range(100):  # Readings are written by a thread of their own.
            words, *_ = scene(tmp_path, "mine", frozenset())
            if "5 steps are recorded so far" in words["words"]:
                break
            time.sleep(0.1)
        assert "not finished: 5 steps are recorded so far" in words["words"]
        assert words["going"] is True
    words, *figures = scene(tmp_path, "mine", frozenset())
    assert words["going"] is False
    assert "finished" in words["words"]
    assert "loss" in words["words"]
    assert [each["figure"] for each in figures] == words["figures"] != []


def test_a_fingerprint_is_of_the_picture() -> None:
    x = np.arange(3.0)

    def figure(y: np.ndarray, label: str = "a", caption: str = "") -> Figure:
        return Figure("f", "F", caption, (Panel("p", "x", "y", (Line(x, y, label),)),))

    same = fingerprint(figure(x))
    assert fingerprint(figure(x.copy())) == same
    others = [figure(x + 1e-9), figure(x, "b"), figure(x, "a", "c")]
    assert len({same, *map(fingerprint, others)}) == 4
