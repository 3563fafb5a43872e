"""The worlds: limits, verdicts that turn, and code that makes the same numbers again."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnscope
from attnscope.catalogue import load
from attnscope.cli.verbs.run import parse
from attnscope.errors import AttnscopeError
from attnscope.experiment import Stopped, solve
from attnscope.experiment.spec import settings
from attnscope.lab import drawing
from attnscope.lab.worlds import KEYS, WORLDS, Choice, Slider, world
from attnscope.lab.worlds.scene import scene
from attnscope.report.figure import Dots, Figure, Line, Rule
from attnscope.report.interactive import layout

SMALL: dict[str, dict[str, Any]] = {
    "lu2021": {"m": 3, "dictionary": 50, "dim": 5, "topics": 3, "draw": 4},
    "li2023": {"topics": 3, "words": 3, "tau": 1, "documents": 20, "until": 250, "draw": 2},
    "predict": {"texts": 50, "length": 5, "epochs": 300, "draw": 1},
    "song2024": {"sequences": 2, "length": 3, "width": 8, "until": 2.0, "draw": 1},
    "snell2021": {"length": 3, "types": 5, "pairs": 20, "width": 50, "noise": 0.2, "draw": 3},
    "boix2023": {"alpha": 1e-3, "tokens": 3, "samples": 20, "until": 5.0, "draw": 2},
    "edelman2024": {"length": 8, "sequences": 20, "rate": 300.0, "until": 3.0, "draw": 1},
}


def numbers(figures: list[Figure] | tuple[Figure, ...]) -> list[np.ndarray]:
    """Return every array that is drawn."""
    found = []
    for figure in figures:
        for panel in figure.panels:
            for mark in panel.marks:
                if isinstance(mark, Line | Dots):
                    found += [mark.x, mark.y]
                elif isinstance(mark, Rule):
                    found.append(np.array([mark.at]))
    return found


@pytest.mark.parametrize("key", KEYS)
def test_the_code_that_is_shown_makes_the_drawn_numbers(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(key)
    study = here.spec({**here.defaults(), **SMALL[key]})
    shown = scene(study)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(attnscope, "write_report", lambda run: None)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # no further processes
    names: dict[str, Any] = {}
    exec(shown.python, names)
    tree = names["run"]
    again = study.figures(study.read(tree))
    drawn = numbers(shown.figures)
    assert len(drawn) > 8
    for ours, theirs in zip(drawn, numbers(again), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(
        shown.attention.weights, study.attention(study.read(tree)).weights
    )
    found = attnscope.findings(tree)
    assert [(f.key, f.verdict) for f in found] == [(f.key, f.verdict) for f in shown.findings]
    assert len(shown.python.splitlines()) <= 8

    words = shlex.split(shown.command)
    assert words[:2] == ["attnscope", "run"]
    assert parse(load(words[2]), words[3:])[1] == study


@pytest.mark.parametrize("key", KEYS)
def test_numbers_alone_are_what_a_new_document_would_hold(key: str) -> None:
    here = world(key)
    (figure,) = scene(here.spec({**here.defaults(), **SMALL[key]})).figures
    grid: Any = layout(figure).children[-1]
    known = drawing.columns(figure)
    assert len({name.split("-")[0] for name in known}) == len(figure.panels)
    for place, plot in enumerate(grid.children):
        mine = [data for name, data in known.items() if name.startswith(f"p{place}-")]
        for renderer, columns in zip(plot.renderers, mine, strict=True):
            source = renderer.data_source.data
            assert set(source) == set(columns)
            for name, values in source.items():
                if isinstance(values, np.ndarray):
                    assert columns[name] == drawing.packed(values)
                elif name in ("xs", "ys"):
                    assert columns[name] == [drawing.packed(part) for part in values]
                else:
                    assert columns[name] == list(values)
    document = drawing.item(figure)
    assert document["root_id"]


@pytest.mark.parametrize("key", KEYS)
def test_numbers_do_not_change_the_structure_and_labels_do(key: str) -> None:
    here = world(key)
    setting = {**here.defaults(), **SMALL[key]}
    (one,) = scene(here.spec(setting)).figures
    (other,) = scene(here.spec({**setting, "draw": 7})).figures
    assert drawing.signature(one) == drawing.signature(other)
    first = one.panels[0]
    renamed = dataclasses.replace(first, ylabel="something else")
    changed = dataclasses.replace(one, panels=(renamed, *one.panels[1:]))
    assert drawing.signature(changed) != drawing.signature(one)


def verdicts(key: str, **changed: Any) -> dict[str, str]:
    here = world(key)
    found = scene(here.spec({**here.defaults(), **changed})).findings
    return {finding.key: finding.verdict for finding in found}


def test_claims_of_the_paper_size_hold_and_their_controls_fail() -> None:
    found = scene(world("lu2021").spec(world("lu2021").defaults())).findings
    assert [f.verdict for f in found] == ["holds"] * 5
    assert all(f.control_fails for f in found)


def test_lu_in_a_small_dictionary_other_words_are_learned_too() -> None:
    assert verdicts("lu2021", dictionary=20)["assumption1-scores"] == "fails"


def test_lu_a_large_start_leaves_the_curve() -> None:
    assert verdicts("lu2021", dictionary=200, variance=0.1)["corollary1-FC"] == "fails"


def test_song_a_huge_output_and_no_values_are_certified() -> None:
    start = {"width": 32, "sequences": 2, "until": 2.0}
    assert verdicts("song2024", **start)["certificate"] == "fails"
    certain = verdicts("song2024", **start, value_scale=0.0, output_scale=1e6)
    assert certain["certificate"] == "holds"
    assert certain["rate"] == "holds"


def test_snell_counts_say_nothing_if_all_sentences_have_the_same_words() -> None:
    corpus = {"length": 4, "pairs": 50, "width": 500}
    assert verdicts("snell2021", **corpus, types=8)["words"] == "holds"
    assert verdicts("snell2021", **corpus, types=4)["words"] == "fails"


def test_snell_the_toy_looks_where_its_start_points() -> None:
    small = {"length": 2, "types": 4, "pairs": 10, "width": 10}
    # β₁ - β₀ + √2 p decides: -0.05 + 0.07 and -0.1 + 0.07
    right = verdicts("snell2021", **small, head_start=-0.05, first_look=0.2)
    wrong = verdicts("snell2021", **small, head_start=-0.5, first_look=0.2)
    assert (right["toy-right"], wrong["toy-right"]) == ("holds", "fails")


def test_li_attention_that_has_not_started_is_undecided() -> None:
    here = world("li2023")
    shown = scene(here.spec({**here.defaults(), **SMALL["li2023"], "noise": 1e-5}))
    assert {f.key: f.verdict for f in shown.findings}["onset"] == "undecided"
    assert "has not started" in shown.outcome


@pytest.mark.parametrize("key", KEYS)
def test_attention_is_shown_moment_by_moment(key: str) -> None:
    here = world(key)
    shown = scene(here.spec({**here.defaults(), **SMALL[key]})).attention
    assert shown.weights.shape == (len(shown.times), len(shown.queries), len(shown.keys))
    assert np.isfinite(shown.weights).all()
    np.testing.assert_allclose(shown.weights.sum(axis=2), 1.0, rtol=1e-5)
    assert len(shown.groups) == len(shown.keys)
    assert len(shown.right) == len(shown.queries)


def test_a_run_can_be_stopped() -> None:
    asked = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 3

    with pytest.raises(Stopped, match="stopped at time"):
        solve(world("lu2021").spec(world("lu2021").defaults()), stopped)
    assert len(asked) == 4


def test_every_control_is_a_field_and_opens_within_its_limits() -> None:
    for here in WORLDS:
        fields = {name: each.value for name, each in settings(load(here.study)()).items()}
        default = here.defaults()
        for control in here.controls:
            assert default[control.name] == fields[control.name]
            if isinstance(control, Slider):
                assert list(control.values) == sorted(set(control.values))
                assert default[control.name] in control.values
            else:
                assert isinstance(control, Choice)
                assert default[control.name] in dict(control.options)
        here.spec(default)


def test_what_is_out_of_range_is_brought_into_it_with_a_sentence() -> None:
    here = world("lu2021")
    setting, said = here.admit({"m": 1e9, "dictionary": "3000", "draw": -1})
    assert (setting["m"], setting["dictionary"], setting["draw"]) == (60, 2000, 0)
    assert said[0] == "m = 1000000000.0 became 60: expected 1 to 60."
    assert said[1].startswith("dictionary = 3000 became 2000")
    assert len(said) == 3


def test_addresses_that_counted_steps_still_lead_there() -> None:
    for key, epochs, until in (
        ("li2023", 500, 500),
        ("song2024", "200", 2.0),
        ("snell2021", 50, 0.05),
    ):
        setting, said = world(key).admit({"epochs": epochs})
        assert (setting["until"], said) == (until, [])
    assert world("song2024").admit({"epochs": "many"})[1]


@pytest.mark.parametrize("value", ["abc", "nan", None, [1], {"a": 1}])
def test_nonsense_leaves_the_value_the_page_opens_with(value: object) -> None:
    setting, said = world("lu2021").admit({"m": value, "classifier": value, "nothing": value})
    assert setting == world("lu2021").defaults()
    assert len(said) == 3
    assert "Expected" in said[0] or "expected" in said[0]


@pytest.mark.parametrize(
    ("key", "setting", "said"),
    [
        ("lu2021", {"dim": 2, "topics": 8}, "expected 8 dimensions"),
        ("li2023", {"topics": 10, "words": 10}, "expected 50 or fewer"),
        ("li2023", {"topics": 3, "tau": 3}, "expected fewer"),
        ("song2024", {"sequences": 15, "length": 8}, "expected 60 or fewer"),
        ("song2024", {"trained": "query", "value_scale": 0.0}, "expected a W\\^V above 0"),
        ("snell2021", {"length": 10, "types": 3}, "expected 10 or more"),
    ],
)
def test_two_controls_that_do_not_go_together(key: str, setting: dict[str, Any], said: str) -> None:
    here = world(key)
    with pytest.raises(AttnscopeError, match=said):
        here.spec({**here.defaults(), **setting})


def test_an_unknown_world_is_named() -> None:
    with pytest.raises(AttnscopeError, match="Did you mean 'lu2021'"):
        world("lu2020")
