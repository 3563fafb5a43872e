"""Runs over each other: a colour is a run, and theory stays theory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lab_folders import EVIL, write_run

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.lab.entries import entry
from attnscope.lab.overlay import chosen, over_each_other, overlay_page, scene, shared_figure
from attnscope.report.figure import Band, Dots, Figure, Heat, Line, Panel, Rule
from attnscope.studies.lu2021.sen import Sen
from attnscope.trajectory import open_run
from findings import finding

X = np.arange(3.0)


def figure(scale: float, *, heat: bool = False, name: str = "f") -> Figure:
    marks = (
        Line(X, scale * X, "word a", color=3),
        Line(X, X**2, "theory", theory=True),
        Band(X, X - 1, X + 1, "seeds", color=5),
        Dots(X, scale * X, label="dots", color=6),
        Rule(1.0, "limit"),
    )
    cells = Heat(np.arange(3.0), np.arange(3.0), np.ones((2, 2)), "weight")
    panels = (Panel("curves", "x", "y", marks), Panel("map", "x", "y", (cells,)))
    return Figure(name, "Title", "m = 20", panels if heat else panels[:1])


def test_marks_take_the_colour_of_their_run() -> None:
    (merged,), left = over_each_other([[figure(1.0)], [figure(2.0)]], ["one", "two"])
    assert left == ""
    (panel,) = merged.panels
    lines = [mark for mark in panel.marks if isinstance(mark, Line) and not mark.theory]
    assert [(each.label, each.color) for each in lines] == [("one", 0), ("two", 1)]
    np.testing.assert_array_equal(lines[1].y, 2.0 * X)
    theory = [mark for mark in panel.marks if isinstance(mark, Line) and mark.theory]
    assert [each.label for each in theory] == ["theory", "theory"]
    assert [mark.color for mark in panel.marks if isinstance(mark, Band)] == [0, 1]
    assert sum(isinstance(mark, Rule) for mark in panel.marks) == 1  # the same rule once
    assert "m = 20" not in merged.caption  # which holds for one of them


def test_what_fills_its_panel_is_left_out_and_named() -> None:
    both = [[figure(1.0, heat=True)], [figure(2.0, heat=True)]]
    (merged,), left = over_each_other(both, ["one", "two"])
    assert [panel.title for panel in merged.panels] == ["curves"]
    assert left == "Title"


def test_a_figure_that_only_one_run_has_is_left_out() -> None:
    merged, left = over_each_other(
        [[figure(1.0), figure(1.0, name="g")], [figure(2.0)]], ["a", "b"]
    )
    assert [each.name for each in merged] == ["f"]
    assert left == "Title"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    for name, m in (("four", 4), ("six", 6)):
        small = Sen(seeds=2, epochs=40, points=5, dictionary=30, train=24, test=8, m=m, dim=5)
        attnscope.run(small, made / name, workers=1)
    return made


def test_shared_observables_are_means_of_cases_over_seeds(root: Path) -> None:
    trees = [open_run(root / name) for name in ("four", "six")]
    drawn, alone = shared_figure(trees, ["four", "six"])
    assert alone == []
    loss = drawn.panels[0]
    assert loss.title == "loss"
    assert [mark.label for mark in loss.marks] == ["four"] * 4 + ["six"] * 4
    values = trees[1]["observables/loss"]
    case = values["case"].to_numpy() == "TC"
    np.testing.assert_allclose(loss.marks[5].y, values.to_numpy()[case].mean(axis=0))


def test_the_scene_has_the_studys_own_figures_and_what_is_shared(root: Path) -> None:
    words, *figures = scene(root, ["four", "six"])
    assert words["figures"] == [each["figure"] for each in figures]
    assert words["figures"][-1] == "shared"
    assert "fig2-sen" in words["figures"]
    assert "2 runs are drawn over each other" in words["words"]
    page = overlay_page([entry(root, "four"), entry(root, "six")])
    assert "m = 4" in page
    assert "m = 6" in page


def test_what_was_asked_for_is_checked(tmp_path: Path) -> None:
    write_run(tmp_path, "a")
    assert [run.name for run in chosen(tmp_path, ["a", "a"])] == ["a"]
    with pytest.raises(AttnscopeError, match="No run was chosen"):
        chosen(tmp_path, [])
    with pytest.raises(AttnscopeError, match=r"7 runs were chosen\. Expected at most 6"):
        chosen(tmp_path, [str(number) for number in range(7)])
    with pytest.raises(AttnscopeError, match="There is no 'b'"):
        chosen(tmp_path, ["a", "b"])


def test_verdicts_stand_side_by_side_and_words_are_text(tmp_path: Path) -> None:
    write_run(tmp_path, "a", study=EVIL, spec={"w": EVIL}, findings=(finding(sentence=EVIL),))
    write_run(tmp_path, "b", study=EVIL, findings=(finding(verdict="fails"), finding(key="x")))
    page = overlay_page(chosen(tmp_path, ["a", "b"]))
    assert page.count("<tr>") == 2  # the head, and the one claim that both decide
    assert "✓ holds" in page
    assert "✗ fails" in page
    assert "<img" not in page
    assert "<script" not in page
