from __future__ import annotations

import doctest
import math

from attnscope.report import wording
from findings import finding


def test_examples() -> None:
    assert doctest.testmod(wording).failed == 0


def test_summary_counts() -> None:
    assert wording.summary([finding()]) == "1 of 1 claim holds"
    assert wording.summary([finding()] * 10) == "10 of 10 claims hold"
    some = [finding()] * 7 + [finding(verdict="fails")] * 2 + [finding(verdict="undecided")]
    assert wording.summary(some) == "7 of 10 claims hold, 2 fail, 1 undecided"
    blunt = [finding(control_fails=False)] * 2
    assert wording.summary(blunt) == "2 of 2 claims hold, 2 controls do not fail"


def test_interval_names_its_kind_and_seeds() -> None:
    assert wording.interval(finding()) == "0.0051 to 0.0066 (range over seeds, n = 5)"
    lone = finding(low=math.nan, high=math.nan, seeds=1)
    assert wording.interval(lone) == "(no interval, n = 1)"
    # The range over one seed is that seed: no interval either.
    assert wording.interval(finding(low=0.0058, high=0.0058, seeds=1)) == "(no interval, n = 1)"


def test_control_outcome() -> None:
    assert wording.control_outcome(finding()) == "fails, as it must"
    loud = wording.control_outcome(finding(control_fails=False))
    assert loud == "CONTROL PASSES: this claim proves nothing"
    unsure = finding(control_fails=False, control_undecided=True, seeds=1)
    assert wording.control_outcome(unsure).startswith("undecided: one seed has no interval")
    assert wording.control_class(unsure) == "soft"
    assert wording.summary([unsure]) == "1 of 1 claim holds, 1 control undecided"
    none = wording.control_outcome(finding(control_fails=False, control=math.nan))
    assert none == "CONTROL HAS NO VALUE: this claim proves nothing"
