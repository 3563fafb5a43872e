"""A large table before `attnscope predict`: processor time and peak memory.

    python benchmarks/predict_rows.py --rows 10000000

Writes a table of short made-up texts into a temporary folder, runs the command on it in a process
of its own, prints what it took and what was said, and removes the table. A word of opinion
stands in four texts of five, and a source, "(Wire)", in 2 % of one class.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PIECE = 100_000
"""Rows that are made at once."""


def write_table(path: Path, rows: int) -> None:
    """Write rows of a label and about eight words, frequent and rare as in text (Zipf)."""
    dice = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(30_000)])
    share = 1 / np.arange(1, len(words) + 1)
    share /= share.sum()
    with path.open("w", encoding="utf-8") as file:
        file.write("label,text\n")
        for start in range(0, rows, PIECE):
            size = min(PIECE, rows - start)
            labels = dice.integers(0, 2, size)
            drawn = words[dice.choice(len(words), (size, 8), p=share)]
            opinion = np.where(labels, "superb", "awful")
            drawn[:, 3] = np.where(dice.random(size) < 0.8, opinion, drawn[:, 3])
            source = np.where((labels == 1) & (dice.random(size) < 0.02), "(Wire) ", "")
            made = zip(labels, source, drawn, strict=True)
            file.writelines(f"{label},{wire}{' '.join(row)}\n" for label, wire, row in made)


def main() -> None:
    """Print one line on the table and one on what it took."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=10_000_000)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        write_table(table, asked.rows)
        print(f"{asked.rows:,} rows, {table.stat().st_size / 2**20:,.0f} MB", flush=True)
        command = [sys.executable, "-m", "attnscope.cli", "predict", str(table)]
        started = time.monotonic()
        done = subprocess.run(
            [*command, "--out", f"{folder}/report"], capture_output=True, text=True, check=False
        )
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{used.ru_utime + used.ru_stime:.0f} s of processor, {time.monotonic() - started:.0f} "
            f"s by the clock, {used.ru_maxrss / 2**10:,.0f} MB at most, status {done.returncode}"
        )
        print(done.stdout[-6000:], done.stderr[-2000:])


if __name__ == "__main__":
    main()
