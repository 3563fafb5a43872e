"""The nearest name, and errors that are one kind."""

from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError, DiskFullError, nearest
from attnscope.experiment import Broken, Interrupted

NAMES = ["lu2021.sen", "lu2021.synergy", "lu2021.cnn"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("lu2021.senn", "lu2021.sen"), ("synergy", "lu2021.synergy"), ("lu2021.cn", "lu2021.cnn")],
)
def test_the_nearest_name_is_offered(typed: str, meant: str) -> None:
    assert nearest(typed, NAMES) == f" Did you mean '{meant}'?"


@pytest.mark.parametrize("typed", ["", "xyz", "12345678"])
def test_nothing_is_offered_for_what_is_far_from_everything(typed: str) -> None:
    assert nearest(typed, NAMES) == ""
    assert nearest(typed, []) == ""


@pytest.mark.parametrize("kind", [DiskFullError, Broken, Interrupted])
def test_one_except_catches_everything_that_a_person_can_mend(kind: type[Exception]) -> None:
    assert issubclass(kind, AttnscopeError)
