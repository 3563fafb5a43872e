"""A small part of the torture: kills at file operations, several writers, damaged folders.

All of it is ``make torture``; docs/reliability.md says what it found.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import preload

ROOT = Path(__file__).parents[2]


def torture(module: str, *words: str) -> str:
    """Run a program of the torture in a process that has computed nothing yet, so that it forks."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.torture.{module}", *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(
    preload.compiler() is None, reason="kills at file operations need Linux and a C compiler"
)
def test_kills_at_file_operations() -> None:
    said = torture("kills", "--kills", "12", "--seed", "3", "--scenes", "run", "overwrite", "watch")
    assert said.splitlines()[-1].split() == ["all", "12", "0", "0"]


def test_several_writers() -> None:
    assert torture("writers", "--starts", "3", "--seed", "3").split()[-2:] == ["bad", "0"]


def test_damaged_folders() -> None:
    assert "BAD" not in torture("damage", "--cases", "112", "--seed", "3")
