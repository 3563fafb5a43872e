"""One thread, double precision on request, a task for exact oracles, and where real data lie."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from attnscope.tasks import TopicWords, TopicWordsData

torch.set_num_threads(1)
# A shell in the background ignores Ctrl-C, and whatever is started from there would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "attnscope",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=15,
    # The fixtures used here only set the default dtype, which no example changes.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("attnscope")


@pytest.fixture
def float64() -> Iterator[None]:
    """Make new tensors double precision while the test runs."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.fixture
def generator() -> torch.Generator:
    """Return a seeded source of random numbers."""
    return torch.Generator().manual_seed(7)


@pytest.fixture
def tiny() -> TopicWordsData:
    """Return a topic-word task of 15 words and 20 training sentences."""
    task = TopicWords(topics=3, words_per_topic=1, m=4, dictionary=12, train=20, test=6)
    return task.sample(3)


def _data() -> Path | None:
    named = os.environ.get("ATTNSCOPE_DATA")
    beside = Path(__file__).parents[1].parent / "shared" / "data"
    if named:
        return Path(named)
    return beside if beside.is_dir() else None


@pytest.fixture
def data_if_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let studies find the real data, if there are any."""
    if found := _data():
        monkeypatch.setenv("ATTNSCOPE_DATA", str(found))


@pytest.fixture
def real_data() -> Path:
    """Return the folder of real data, or skip the test with a sentence that says how to get it."""
    if found := _data():
        return found
    pytest.skip(
        "real data are not here: set ATTNSCOPE_DATA to their folder, or fetch them, for example by "
        "`attnscope data get sst2`"
    )


@pytest.fixture
def real_sst2(real_data: Path) -> Path:
    """Return the folder of real data if SST-2 is in it, or skip the test."""
    if not list(real_data.glob("sst/stsa/stsa.binary.train*")):
        pytest.skip("SST-2 is not here: set ATTNSCOPE_DATA or run `attnscope data get sst2`")
    return real_data
