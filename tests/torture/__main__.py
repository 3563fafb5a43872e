"""All of the torture, one table: ``python -m tests.torture`` or ``make torture``.

Kills at file operations, several writers, damaged folders, damaged data files, strange command
lines, and many people at the lab. Below 30 minutes: a program that is slower stops early and says
how far it came; one that does not end is ended and counts as bad.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

PROGRAMS: tuple[tuple[str, str, int], ...] = (
    ("kills at file operations", "kills --kills 500 --seed 1 --seconds 840", 960),
    ("writers on one folder", "writers --starts 50 --seed 1 --seconds 150", 240),
    ("damaged run folders", "damage --cases 1000 --seed 1 --seconds 180", 300),
    ("damaged data files", "fuzz_data --cases 20000 --seed 1 --seconds 90", 120),
    ("command lines, specs", "fuzz_cli --cases 10000 --seed 1 --seconds 60", 90),
    ("people at the lab", "lab_load --people 5 --seconds 15", 90),
)
"""What it is called, the command, and seconds that it may take."""


def main() -> int:
    """Run all programs; return 1 if one of them found something."""
    rows = []
    for name, words, limit in PROGRAMS:
        module, *rest = words.split()
        print(f"--- {name}: python -m tests.torture.{words}", flush=True)
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", f"tests.torture.{module}", *rest],
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            code = str(process.wait(limit))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = "too slow"
        result = "held" if code == "0" else f"BAD ({code})"
        rows.append((name, words, result, time.monotonic() - begun))
    print()
    for name, words, result, seconds in rows:
        print(f"{name:26}{result:16}{seconds:6.0f} s   {words}")
    return 1 if any(result != "held" for _, _, result, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
