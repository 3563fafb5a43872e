"""What is freed stays with the process, unless somebody has decided otherwise."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

from attnscope.engines.memory import SETTINGS, keep_freed_memory

FAULTS = """
import resource, torch
from attnscope.engines.memory import keep_freed_memory
torch.set_num_threads(1)
kept = keep_freed_memory()
def work():
    parts = [torch.ones(2**20) for _ in range(10)]
    del parts
for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    work()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
PAGES = 10 * 10 * 2**22 // resource.getpagesize()


def faults(**variables: str) -> tuple[bool, int]:
    """Return whether memory is kept in a process of its own, and how many pages were made anew."""
    shown = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**shown, **variables}
    )
    kept, found = done.stdout.split()
    return kept == "True", int(found)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone is asked")
def test_pages_are_not_made_anew_at_every_step() -> None:
    kept, found = faults()
    if not kept:
        pytest.skip("another C library")
    assert found < 0.1 * PAGES
    # Where every block goes back to the system all pages are made anew, and nothing is changed.
    kept, found = faults(MALLOC_MMAP_THRESHOLD_="131072")
    assert not kept
    assert found > 0.9 * PAGES


@pytest.mark.parametrize("name", SETTINGS)
def test_who_has_decided_otherwise_is_left_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "0")
    keep_freed_memory.cache_clear()
    assert not keep_freed_memory()
    keep_freed_memory.cache_clear()
