"""Train the clinic anew, replay every training as it grew, and print the table.

python benchmarks/clinic.py                    both halves, some ten minutes on one core
python benchmarks/clinic.py judged             the half that no threshold was fixed on
python benchmarks/clinic.py spike rank         cases with these words in their names
python benchmarks/clinic.py --write judged     also write the recordings that the tests replay
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "clinic"))

from clinic_cases import CASES
from clinic_records import thinned, write
from clinic_replay import replay, table
from clinic_training import train

from attnscope.watched.chart import chart_of

APART = 8
"""Steps between the readings that are written for the tests."""


def main(words: list[str]) -> None:
    """Print a line for each case that has one of the words in its half or its name."""
    keep = "--write" in words
    words = [word for word in words if word != "--write"]
    torch.set_num_threads(1)
    begun = time.perf_counter()
    replayed, charts = [], {}
    for case in CASES:
        if words and not any(word in f"{case.half} {case.name}" for word in words):
            continue
        with tempfile.TemporaryDirectory() as folder:
            chart = chart_of(train(case, Path(folder) / "run"))
        replayed.append(replay(case, chart))
        charts[case.name] = thinned(chart, APART)
        print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(table(replayed))
    print(f"{time.perf_counter() - begun:.0f} s")
    if keep:
        write(charts)


if __name__ == "__main__":
    main(sys.argv[1:])
