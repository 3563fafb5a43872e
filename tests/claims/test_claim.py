"""Verdicts on intervals, and the control beside them."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from attnscope.claims import (
    Claim,
    Criterion,
    Finding,
    above,
    below,
    call,
    examine,
    examine_all,
    within,
)
from attnscope.errors import AttnscopeError

TREE = xr.DataTree()


def claim(values: list[float], control: list[float], criterion: Criterion, each: bool) -> Claim:
    return Claim(
        key="norm",
        sentence="The norm follows the formula.",
        of=lambda run, m: np.array(values if m == 20 else control),
        given=20,
        holds=criterion,
        control=(40, "The wrong m."),
        source="Lu 2021, eq 10",
        paper="equal",
        each=each,
        reason="The formula is a limit.",
        measure="%",
    )


@pytest.mark.parametrize(
    ("criterion", "low", "high", "verdict"),
    [
        (below(2), 0, 1.9, "holds"),
        (below(2), 2.0, 3, "fails"),
        (below(2), 1, 2.0, "undecided"),
        (above(2), 2.1, 9, "holds"),
        (above(2), 1, 2.0, "fails"),
        (above(2), 2.0, 3, "undecided"),
        (within(0, 1), 0.1, 0.9, "holds"),
        (within(0, 1), -2, 0.0, "fails"),
        (within(0, 1), 1.0, 1.5, "fails"),
        (within(0, 1), -1, 0.5, "undecided"),
        (within(0, 1), 0.5, 1.5, "undecided"),
        (within(0, 1), -1, 2, "undecided"),
        (below(2), math.nan, 1, "undecided"),
        (below(2), 0, math.nan, "undecided"),
        (below(2), 3, math.inf, "fails"),
    ],
)
def test_an_interval_is_judged(criterion: Criterion, low: float, high: float, verdict: str) -> None:
    assert criterion.judge(low, high) == verdict


@given(*[st.floats(-5, 5)] * 4)
def test_a_wider_interval_never_decides_more(a: float, b: float, c: float, d: float) -> None:
    outer_low, low, high, outer_high = sorted((a, b, c, d))
    for criterion in (below(0), above(1), within(-1, 1)):
        wide = criterion.judge(outer_low, outer_high)
        assert wide in (criterion.judge(low, high), "undecided")


def test_criteria_read_as_text() -> None:
    assert str(below(0.02)) == "< 0.02"
    assert str(above(3)) == "> 3"
    assert str(within(1, 2.5)) == "1 to 2.5"


def test_each_seed_must_satisfy_the_criterion() -> None:
    good = examine(claim([1.0, 1.5, 1.9], [3.0, 4.0, 2.5], below(2), True), TREE)
    assert (good.verdict, good.low, good.high, good.seeds) == ("holds", 1.0, 1.9, 3)
    assert good.ours == pytest.approx(4.4 / 3)
    assert (good.control_low, good.control_high, good.control_fails) == (2.5, 4.0, True)
    assert good.control == pytest.approx(9.5 / 3)
    assert good.interval == "range over seeds"
    assert good.reason == ""
    one_bad = examine(claim([1.0, 1.5, 2.1], [3.0], below(2), True), TREE)
    assert one_bad.verdict == "fails"
    assert one_bad.reason == "The formula is a limit."
    all_bad = examine(claim([2.2, 2.1], [3.0], below(2), True), TREE)
    assert all_bad.verdict == "fails"
    assert all_bad.reason == "The formula is a limit."


def test_the_mean_is_judged_by_students_interval() -> None:
    # t(0.975, 4) = 2.776445; the standard error of 1..5 is sqrt(2.5 / 5).
    found = examine(claim([1, 2, 3, 4, 5], [9, 9.1], below(5), False), TREE)
    half = 2.7764451 * math.sqrt(0.5)
    assert found.low == pytest.approx(3 - half, abs=1e-6)
    assert found.high == pytest.approx(3 + half, abs=1e-6)
    assert found.ours == 3
    assert found.verdict == "holds"
    assert found.interval == "95 % interval of the mean"
    assert examine(claim([1, 2, 3, 4, 5], [9, 9], below(4.9), False), TREE).verdict == "undecided"


def test_a_single_seed_decides_by_itself_but_has_no_interval_of_the_mean() -> None:
    each = examine(claim([1.0], [3.0], below(2), True), TREE)
    assert (each.verdict, each.low, each.high, each.seeds) == ("holds", 1.0, 1.0, 1)
    mean = examine(claim([1.0], [3.0], below(2), False), TREE)
    assert (mean.verdict, mean.ours, mean.seeds) == ("undecided", 1.0, 1)
    assert math.isnan(mean.low)
    assert math.isnan(mean.high)
    assert not mean.control_fails


@pytest.mark.parametrize("each", [True, False])
def test_not_a_number_leaves_it_undecided(each: bool) -> None:
    found = examine(claim([1.0, math.nan], [math.nan, 3.0], below(2), each), TREE)
    assert found.verdict == "undecided"
    assert not found.control_fails


@pytest.mark.parametrize("each", [True, False])
def test_no_seed_leaves_it_undecided(each: bool) -> None:
    found = examine(claim([], [], below(2), each), TREE)
    assert (found.verdict, found.seeds) == ("undecided", 0)


@pytest.mark.parametrize("each", [True, False])
def test_equal_seeds_have_an_interval_of_no_width(each: bool) -> None:
    found = examine(claim([1.0, 1.0], [2.0, 2.0], below(2), each), TREE)
    assert (found.verdict, found.low, found.high) == ("holds", 1.0, 1.0)
    assert found.control_fails


@pytest.mark.parametrize("control", [[1.0, 1.2], [1.0, 2.5]])
def test_a_control_that_does_not_fail_is_flagged(control: list[float]) -> None:
    found = examine(claim([1.0, 1.5], control, below(2), True), TREE)
    assert found.verdict == "holds"
    assert not found.control_fails


def test_the_statistic_sees_the_trajectory() -> None:
    tree = xr.DataTree.from_dict(
        {"/observables": xr.Dataset({"norm": (("run", "step"), [[0.0, 1.0], [0.0, 3.0]])})}
    )
    base = claim([], [], below(4), True)
    reading = dataclasses.replace(
        base,
        of=lambda run, more: run["observables/norm"].isel(step=-1).values + more,
        given=0,
        control=(4, "more"),
    )
    found = examine(reading, tree)
    assert (found.ours, found.low, found.high, found.control) == (2.0, 1.0, 3.0, 6.0)


def test_a_finding_is_json() -> None:
    found = examine(claim([1.0, 1.5], [3.0, 4.0], below(2), False), TREE)
    fields = json.loads(json.dumps(found.to_json()))
    assert fields.keys() == {field.name for field in dataclasses.fields(Finding)}
    assert Finding(**fields) == found
    assert (fields["key"], fields["paper"], fields["measure"]) == ("norm", "equal", "%")
    assert fields["criterion"] == "< 2"


def test_what_is_unknown_survives_strict_json() -> None:
    found = examine(claim([math.nan], [3.0], below(2), True), TREE)
    text = json.dumps(found.to_json(), allow_nan=False)
    again = Finding.from_json(json.loads(text))
    assert math.isnan(again.ours)
    assert again.to_json() == found.to_json()


def test_a_control_without_values_does_not_fail() -> None:
    assert not examine(claim([0.5], [], below(1.0), each=True), TREE).control_fails
    assert examine(claim([0.5], [2.0], below(1.0), each=True), TREE).control_fails


def test_a_control_with_the_argument_of_its_statement_is_refused() -> None:
    for argument in (20, "FC", ("a", 1), np.max, None):
        with pytest.raises(AttnscopeError, match=r"claim 'same' has .* of its statement and"):
            Claim("same", "It holds.", call, argument, below(1), (argument, "the same"))
    Claim("other", "It holds.", call, 1, below(1), (True, "another kind of argument"))


def test_a_claim_of_several_cases_is_one_for_each() -> None:
    runs = [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    names = {"case": ("run", [c for c, _ in runs]), "seed": ("run", [s for _, s in runs])}
    tree = xr.DataTree.from_dict(
        {
            "observables": xr.Dataset({"x": ("run", [1.0, 3.0, 1.5, 3.5])}, names),
            "stats": xr.Dataset({"seconds": ("run", np.zeros(4))}, names),
        }
    )
    family = Claim(
        "small",
        "{case}: x is small.",
        lambda run, factor: factor * run.x,
        1.0,
        below(2),
        (10.0, "ten times the x of {case}"),
        measure="x of {case}",
        per=("a", "b"),
    )
    one, other = examine_all([family], tree)
    assert (one.key, one.verdict, one.sentence) == ("small-a", "holds", "a: x is small.")
    assert (other.key, other.verdict, other.ours) == ("small-b", "fails", 3.25)
    assert one.control_sentence == "ten times the x of a"
    assert other.measure == "x of b"
    assert one.control == 12.5


def test_two_functions_can_be_statement_and_control() -> None:
    found = examine(
        Claim("f", "", call, lambda run: [1.0], below(2), (lambda run: [3.0], "")), TREE
    )
    assert (found.ours, found.control, found.control_fails) == (1.0, 3.0, True)


def test_a_control_of_one_seed_or_across_the_edge_is_undecided() -> None:
    one = examine(claim([1.0], [5.0], below(2), each=False), TREE)
    assert (one.control_fails, one.control_undecided) == (False, True)
    wide = examine(claim([1.0, 1.1], [1.0, 5.0], below(2), each=False), TREE)
    assert (wide.control_fails, wide.control_undecided) == (False, True)
    passes = examine(claim([1.0, 1.1], [1.0, 1.1], below(2), each=False), TREE)
    assert (passes.control_fails, passes.control_undecided) == (False, False)
    older = {k: v for k, v in one.to_json().items() if k != "control_undecided"}
    assert Finding.from_json(older).control_undecided is False
