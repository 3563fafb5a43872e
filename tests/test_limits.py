"""Limits: a default, a variable, a flag, and a sentence that names all three."""

from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.limits import BYTES, ROWS, RUNS, STREAMED_BYTES, STREAMED_ROWS, Limit


@pytest.mark.parametrize("limit", [ROWS, BYTES, RUNS, STREAMED_ROWS, STREAMED_BYTES])
def test_a_limit_has_a_default_and_a_variable(
    limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(limit.variable, raising=False)
    assert limit.value() == limit.default
    limit.check(limit.default, "it fits")
    monkeypatch.setenv(limit.variable, "7")
    assert limit.value() == 7
    with pytest.raises(AttnscopeError, match=rf"^8 of them: expected at most 7 {limit.what}"):
        limit.check(8, "8 of them")
    with pytest.raises(AttnscopeError, match=f"{limit.flag} or {limit.variable}"):
        limit.check(8, "8 of them")


@pytest.mark.parametrize("said", ["0", "-1", "x", "1.5", "1e9", "٣", " 7", "9" * 5000])
def test_what_is_no_limit(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROWS.variable, said)
    with pytest.raises(AttnscopeError, match=r"ATTNSCOPE_MAX_ROWS = .*a whole number of 1 or more"):
        ROWS.value()
    with pytest.raises(AttnscopeError, match=r"--max-rows .*a whole number of 1 or more"):
        ROWS.allow(said)


def test_what_is_allowed_reaches_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNS.variable, "1")
    RUNS.allow(20_000)
    assert RUNS.value() == 20_000
