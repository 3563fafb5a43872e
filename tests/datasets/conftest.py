"""Where real data lie, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def real_data() -> Path:
    """Return the folder of real data, or skip the test with a sentence that says how to get it."""
    named = os.environ.get("ATTNSCOPE_DATA")
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    if named:
        return Path(named)
    if beside.is_dir():
        return beside
    pytest.skip(
        "real data are not here: set ATTNSCOPE_DATA to their folder, or fetch them, for example by "
        "`attnscope data get sst2`"
    )
