"""A watched run has a report like any other: finished, still going, killed or with nothing yet."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from diagnosed_toys import scale_queries_and_keys, watched

from attnscope.catalogue import of_tree
from attnscope.claims.diagnosis import Diagnosis
from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.report.overview import ReadingMap
from attnscope.report.page import Page
from attnscope.report.terminal import diagnosis_list
from attnscope.results import page_of, write_report
from attnscope.trajectory import RunFolder, open_run
from attnscope.trajectory.manifest import WATCHED
from attnscope.watched import Watched
from attnscope.watched.course import course
from attnscope.watched.diagnosis.places import listed
from attnscope.watched.diagnosis.uniform import UNIFORM
from attnscope.watched.maps import maps_of
from attnscope.watched.overview import fitting
from attnscope.watching.moment import Moment, Reading
from watched_toys import LOSS, NORM, WEIGHTS, Reader, scope, train


@pytest.fixture(scope="module")
def flawed(tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    """A run with something to say."""
    out = tmp_path_factory.mktemp("runs") / "mine"
    return watched(out, lambda model: scale_queries_and_keys(model, 1e-3), plain=True, lr=0.5)


def test_the_study_of_a_watched_run(flawed: xr.DataTree) -> None:
    study = of_tree(flawed)
    assert isinstance(study, Watched)
    assert study.name() == WATCHED
    assert study.to_json() == json.loads(flawed.attrs["spec"])
    assert study.runs() == [("watched", 0)]
    assert study.claims() == ()


def test_the_page_says_what_is_the_matter(flawed: xr.DataTree) -> None:
    page = page_of(flawed)
    assert page.title == "Finder, watched"
    (found,) = page.diagnoses
    assert (found.name, found.symptoms) == ("knowledge", ("uniform",))
    assert page.overview is not None
    assert [event.text for event in page.overview.events] == [
        "knowledge learned but attention not yet"
    ]
    assert page.overview.events[0].step == found.since_step > 0
    assert (
        "1 attention layer of 2 heads, read every 4 steps, on a fixed probe batch" in page.summary
    )
    assert page.command == ""
    lines = page.python.splitlines()
    assert lines[2] == 'with attnscope.watch(model, "runs/mine", every=4, probe=batch) as scope:'
    assert lines[5].strip() == "scope.step(loss)"
    assert page.findings == []


def test_figures_show_what_was_recorded(flawed: xr.DataTree) -> None:
    figures = {figure.name: figure for figure in page_of(flawed).figures}
    held = flawed["observables"].to_dataset()
    (loss,) = figures["loss"].panels
    assert np.array_equal(loss.marks[0].y, held["loss"].to_numpy()[0, 1:])  # type: ignore[union-attr]
    panels = {panel.title: panel for panel in figures["heads-layer-0"].panels}
    assert {"relative entropy", "max attention", "distance to uniform", "logit range"} <= set(
        panels
    )
    for head, line in enumerate(panels["distance to uniform"].marks[:2]):
        expected = held["distance_to_uniform"].to_numpy()[0, :, 0, head]
        assert np.array_equal(line.y, expected)  # type: ignore[union-attr]
        assert line.label == f"head {head}"
    for name in ("weight_norm", "gradient_norm", "update_ratio"):
        assert [panel.title for panel in figures[name].panels] == ["W^Q", "W^K", "W^V", "W^O"]
        line = figures[name].panels[2].marks[0]
        expected = held[name].to_numpy()[0, :, 0, 2]
        assert np.array_equal(line.y, expected[~np.isnan(expected)])  # type: ignore[union-attr]
    ratios = {panel.title: panel for panel in figures["layers"].panels}
    assert ratios["query key gradient ratio"].yscale == "log"


def test_the_onset_of_attention_is_a_table(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", lambda model: scale_queries_and_keys(model, 0.3))
    onset = next(table for table in page_of(tree).tables if table.name == "onset")
    distances = tree["observables/distance_to_uniform"].to_numpy()[0, :, 0]
    steps = tree["observables/time"].to_numpy()
    assert len(onset.rows) == 2
    for head, row in enumerate(onset.rows):
        assert row[1] == head
        assert row[2] == steps[distances[:, head] > UNIFORM][0]
        assert row[2] > 0  # type: ignore[operator]
        assert row[3:] == (distances[0, head], distances[-1, head])


def test_attention_that_has_not_begun_has_no_onset(flawed: xr.DataTree) -> None:
    onset = next(table for table in page_of(flawed).tables if table.name == "onset")
    assert [row[2] for row in onset.rows] == ["not yet", "not yet"]


def test_maps_are_those_of_the_run(flawed: xr.DataTree) -> None:
    (maps,) = page_of(flawed).maps
    assert maps.title == "Layer 0: attention"
    held = flawed["observables/attention"].to_numpy()[0, :, 0]
    assert maps.steps == tuple(range(0, 64, 4))
    assert maps.levels.shape == (16, 4, 2, 8, 8)
    assert maps.levels[3, 1, 1, 2, 5] == 1 + round(254 * math.sqrt(held[3, 1, 1, 2, 5]))
    ids = json.loads(flawed.attrs["spec"])["ids"]
    assert maps.keys[1] == tuple(map(str, ids[1]))


def test_causal_maps_leave_the_first_row_out(flawed: xr.DataTree) -> None:
    tree = flawed.copy()
    held = tree["observables"].to_dataset()
    length = held["attention"].shape[-1]
    causal = held["attention"] * np.tril(np.ones((length, length)))
    tree["observables"] = xr.DataTree(held.assign(attention=causal))
    (maps,) = maps_of(tree, {"tokens": [list("abcdefgh")] * 4})
    assert maps.first_query == 1
    assert maps.levels.shape == (16, 4, 2, 7, 8)
    assert (maps.queries[0], maps.keys[0]) == (tuple("bcdefgh"), tuple("abcdefgh"))
    weights = causal.to_numpy()[0, 3, 0]
    assert maps.levels[3, 1, 1, 2, 3] == 1 + round(254 * math.sqrt(weights[1, 1, 3, 3]))


def test_the_overview_has_every_head_of_every_reading(flawed: xr.DataTree) -> None:
    page = page_of(flawed)
    assert page.overview is not None
    maps = {part.name: part for part in page.overview.maps}
    assert page.overview.maps[0].name == "relative_entropy"
    held = flawed["observables"].to_dataset()
    heads = maps["distance_to_uniform"]
    assert (heads.kind, heads.groups, heads.rows) == (
        "heads",
        (("layer 0", 2),),
        ("head 0", "head 1"),
    )
    assert np.array_equal(heads.values, held["distance_to_uniform"].to_numpy()[0, :, 0].T)
    assert maps["weight_norm"].rows == ("Q", "K", "V", "O")
    assert maps["gradient_norm"].log
    assert maps["gradient_norm"].steps[0] > 0  # of step 0 there is none
    (loss,) = page.overview.losses
    assert np.array_equal(loss.y, held["loss"].to_numpy()[0, 1:])


def test_onsets_are_marked_on_the_loss(tmp_path: Path) -> None:
    tree = watched(tmp_path / "run", lambda model: scale_queries_and_keys(model, 0.3))
    page = page_of(tree)
    assert page.overview is not None
    distances = tree["observables/distance_to_uniform"].to_numpy()[0, :, 0]
    steps = tree["observables/time"].to_numpy()
    first = steps[(distances > UNIFORM).any(axis=1)][0]
    events = {event.text: event for event in page.overview.events}
    assert events["attention begins in the only layer"].step == first
    assert events["attention begins in the only layer"].kind == "good"


def test_many_readings_are_thinned_to_fit() -> None:
    noise = np.random.default_rng(0).random((64, 1000))
    part = ReadingMap("a", "", "layers", (("layer 0", 64),), ("",) * 64, np.arange(1000), noise)
    assert len(fitting([part])[0].steps) == 240
    (small,) = fitting([part], room=20_000)
    assert len(small.steps) == 60
    assert (small.steps[0], small.steps[-1]) == (0, 999)
    assert np.array_equal(small.values, noise[:, small.steps])


def test_words_of_maps_come_from_where_they_are(flawed: xr.DataTree) -> None:
    def words(spec: dict[str, Any]) -> tuple[str, ...]:
        return maps_of(flawed, spec)[0].keys[0]

    ids = [[3, 5, 3, 3, 3, 3, 3, 3]]
    assert words({}) == tuple("01234567")
    assert words({"ids": ids, "words": {"<b>": 5}}) == ("3", "<b>", "3", "3", "3", "3", "3", "3")
    assert words({"ids": ids, "tokens": [list("abcdefgh")]}) == tuple("abcdefgh")
    assert words({"tokens": [["too", "few"]], "ids": "nothing"}) == tuple("01234567")


def test_the_report_and_the_commands_take_such_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs" / "mine"
    few = ["attention", "distance_to_uniform"]
    tree = watched(path, lambda model: scale_queries_and_keys(model, 1e-3), lr=1e-4, record=few)
    written = write_report(tree)
    text = written.read_text()
    assert 'id="diagnosis-uniform"' in text
    assert 'id="maps-layer-0"' in text
    assert "with attnscope.watch(model" in text
    assert "attnscope run" not in text
    assert (written.parent / "tables" / "onset.csv").is_file()
    capsys.readouterr()
    assert main(["show", str(path)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Attention is still uniform after 60 steps" in shown
    assert "What helps:" in shown
    assert main(["claims", "--runs", str(tmp_path / "runs")]) == 0
    assert "no run below" in capsys.readouterr().out
    assert main(["list"]) == 0


def test_a_run_that_is_still_going_has_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnscope.watching.scope.FLUSH", 0.0)
    pages: list[Page] = []

    def each(step: int, model: Reader, loss: float) -> None:
        if step == 20:
            pages.append(page_of(open_run(tmp_path / "run")))

    tracks = (("step", 1, (LOSS, NORM, WEIGHTS)),)
    train(21, lambda model, _: scope(model, tmp_path / "run", tracks), each)
    (page,) = pages
    assert "are recorded so far" in page.status
    assert page.title == "A watched model"
    assert {figure.name for figure in page.figures} >= {"loss", "others"}
    assert "Could not be told" in page.diagnosis_note
    # Attention of training batches, without an axis for layers.
    (maps,) = page.maps
    assert maps.steps[0] == 1


def test_a_run_that_ended_badly_has_a_page(tmp_path: Path) -> None:
    def each(step: int, model: Reader, loss: float) -> None:
        if step == 7:
            raise ZeroDivisionError("in the loop")

    with pytest.raises(ZeroDivisionError):
        train(20, lambda model, _: scope(model, tmp_path / "run"), each)
    page = page_of(open_run(tmp_path / "run"))
    assert "training ended with ZeroDivisionError at step 7" in page.status


def test_a_run_that_says_nothing_of_what_is_recorded_has_a_page(tmp_path: Path) -> None:
    # A manifest and a store, and no word about how much is in it: damage, since every recording
    # says so from the start; what is still good has a page.
    recorder = scope(Reader(), tmp_path / "run")
    with recorder:
        folder = RunFolder(tmp_path / "run")
        page_of(open_run(folder.path))
        kept = folder.state_path(0)
        while not kept.exists():
            time.sleep(0.01)
        kept.unlink()
        with pytest.raises(AttnscopeError, match=r"0000\.json' is gone"):
            open_run(folder.path)
        page = page_of(open_run(folder.path, allow_damaged=True))
        assert "not begun: nothing is recorded yet" in page.status
    assert page.diagnosis_note
    assert page.figures == []
    assert page.maps == []


def test_layers_with_fewer_heads_than_others_are_read_without_a_warning(tmp_path: Path) -> None:
    def read(moment: Moment) -> torch.Tensor:
        values = torch.full((2, 3), 0.3)
        values[1, 1:] = math.nan
        return values

    readings = tuple(
        Reading(name, read, ("layer", "head"))
        for name in ("distance_to_uniform", "relative_entropy", "max_attention")
    )
    tracks = (("step", 1, (LOSS, *readings)),)
    train(8, lambda model, _: scope(model, tmp_path / "run", tracks))
    page = page_of(open_run(tmp_path / "run"))
    assert page.diagnoses == ()
    names = [
        len(panel.marks) for f in page.figures if f.name == "heads-layer-1" for panel in f.panels
    ]
    assert sorted(names) == [1, 1, 2]  # one head, and a rule for one of the panels


def test_a_variable_of_another_shape_is_no_course(flawed: xr.DataTree) -> None:
    assert course(flawed, "distance_to_uniform", "layer") is None
    assert course(flawed, "nothing") is None


def test_places_in_words() -> None:
    assert listed([0], "layer", 1) == "the only layer"
    assert listed([0, 1], "layer", 2) == "all 2 layers"
    assert listed([1], "layer", 3) == "layer 1"
    assert listed([0, 2, 3], "layer", 6) == "layers 0, 2 and 3"


def test_a_terminal_obeys_no_word_of_a_diagnosis() -> None:
    from rich.console import Console

    console = Console(width=80)
    with console.capture() as caught:
        console.print(diagnosis_list([Diagnosis("x", "a\x1b[2Jb [bold]", 3, {"n": 0.5}, "c")]))
    assert "\x1b[2J" not in caught.get()
    assert "[bold]" in caught.get()
    assert "since step 3; n 0.5" in caught.get()
