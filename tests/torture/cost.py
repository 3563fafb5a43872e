"""What checksums, digests and fsync cost: the same run with and without them, turn by turn.

    python -m tests.torture.cost --rounds 7

Without: no CRC-32C is computed, no SHA-256, nothing is synced. The ratio is that of the medians and
needs a quiet machine; the share of a run that is spent in there does not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
import torch

import attnscope
from attnscope import files
from attnscope.studies.lu2021 import Sen
from attnscope.trajectory import documents, metadata

from . import forks

torch.set_num_threads(1)


def without() -> None:
    """Take checksums, digests and fsync out."""
    os.fsync = lambda _: None  # type: ignore[assignment]
    files.onto_disk = lambda _: None  # type: ignore[assignment]
    google_crc32c.value = lambda _: 0  # type: ignore[assignment]
    for module in (documents, metadata):
        module.digest_of = lambda _: "0"  # type: ignore[attr-defined]


def clocked() -> list[float]:
    """Return a list that grows by the seconds of each call in there; syncs side by side add up."""
    spent: list[float] = []

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            begun = time.perf_counter()
            try:
                return function(*args)
            finally:
                spent.append(time.perf_counter() - begun)

        return call

    os.fsync = wrap(os.fsync)
    google_crc32c.value = wrap(google_crc32c.value)
    for module in (documents, metadata):
        module.digest_of = wrap(module.digest_of)  # type: ignore[attr-defined]
    return spent


def timed(out: Path, plain: bool, study: Sen) -> tuple[float, float, float]:
    """Return the seconds of a run by the clock, of the processor, and in checks and syncs."""
    spent: list[float] = []
    if plain:
        without()
    else:
        spent = clocked()
    begun, busy = time.perf_counter(), time.process_time()
    attnscope.run(study, out, workers=1)
    return time.perf_counter() - begun, time.process_time() - busy, sum(spent)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    studies = {
        "lu2021.sen --seeds 1": Sen(seeds=1),
        "lu2021.sen --seeds 1 --engine descent": Sen(seeds=1, engine="descent", epochs=3000),
    }
    for name, study in studies.items():
        taken: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
        with tempfile.TemporaryDirectory(prefix="attnscope-cost-") as folder:
            for number in range(options.rounds):
                for plain in (False, True) if number % 2 else (True, False):
                    out = Path(folder) / f"{number}-{plain}"
                    ended = forks.start(timed, out, plain, study).wait(3600)
                    taken[plain].append(ended.value)
        share = statistics.median(spent / clock for clock, _, spent in taken[False])
        print(f"{name}: {share:.2%} of the run in checksums, digests and fsync")
        for which, what in enumerate(("clock", "processor")):
            with_, plain_ = (
                statistics.median(each[which] for each in taken[plain]) for plain in (False, True)
            )
            ratio = with_ / plain_
            print(f"{name}, {what}: {with_:.3f} s with, {plain_:.3f} s without, ratio {ratio:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
