"""What is freed stays with the process, unless somebody has decided otherwise."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from attnscope.engines.memory import SETTINGS, keep_freed_memory

FAULTS = """
import resource, torch
torch.set_num_threads(1)
from attnscope.engines.memory import keep_freed_memory
kept = keep_freed_memory() if {ask} else None
def work():
    parts = [torch.ones(2**20) for _ in range(40)]
    del parts
for _ in range(3):
    work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    work()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc alone is asked")
def test_pages_are_not_made_anew_at_every_step() -> None:
    """In processes of their own: the setting is the process's, and for good."""
    found = {}
    for ask in (True, False):
        code = FAULTS.format(ask=ask)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        kept, faults = done.stdout.split()
        found[ask] = int(faults)
        if ask and kept == "False":
            pytest.skip("another C library, or a variable that decides otherwise")
    pages = 20 * 40 * 2**22 // resource.getpagesize()
    assert found[True] < 0.01 * pages < 0.1 * pages < found[False]


@pytest.mark.parametrize("name", SETTINGS)
def test_who_has_decided_otherwise_is_left_alone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "0")
    keep_freed_memory.cache_clear()
    assert not keep_freed_memory()
    keep_freed_memory.cache_clear()
