from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.report.figure import Figure
from attnscope.report.page import Page, Table


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", ".hidden", 'a"b', "a.b"])
def test_names_that_are_no_file_names_are_refused(name: str) -> None:
    with pytest.raises(AttnscopeError, match="is not a file name"):
        Page("t", "s", "ok", figures=(Figure(name, "", "", ()),))
    with pytest.raises(AttnscopeError, match="is not a file name"):
        Page("t", "s", "ok", tables=(Table(name, "", (), ()),))


def test_names_must_differ_also_where_case_does_not_count() -> None:
    with pytest.raises(AttnscopeError, match="Two figures are named"):
        Page("t", "s", "ok", figures=(Figure("a", "", "", ()), Figure("A", "", "", ())))


def test_rows_must_fit_the_columns() -> None:
    with pytest.raises(AttnscopeError, match="row of 1 cells"):
        Table("t", "T", ("a", "b"), ((1, 2), (3,)))
