"""Several processes that write to one folder at the same time: one of them does.

    python -m tests.torture.writers --starts 50 --seed 1

Two to five processes are started together with ``attnscope run`` on one folder: the same spec or
others, with ``--resume``, ``--overwrite`` or neither. A start is bad if

- the folder is not one whole run of one of the specs, bit for bit, with the findings of that run;
- a process is refused without a sentence, with a traceback, or for no reason;
- something else is left behind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter as Tally
from pathlib import Path

import xarray as xr

from attnscope.trajectory import open_run
from attnscope.trajectory.check import check_run

from . import forks
from .judge import differences
from .scenes import NAME, STUDY, command, warm_up

SPECS: tuple[tuple[str, ...], ...] = ((), ("--start", "3", "1"), ("--seeds", "2"))
FLAGS: tuple[tuple[str, ...], ...] = ((), ("--resume",), ("--overwrite",))
REASONS = (
    "is being written by",
    "was made by another process just now",
    "holds a run with another spec",
    "has been replaced by another run meanwhile",
)
"""What a process that is refused is told."""


def one(root: Path, spec: tuple[str, ...], flags: tuple[str, ...], delay: float) -> int:
    """Be one of the processes."""
    time.sleep(delay)
    out = str(root / NAME)
    return command("run", STUDY, "--workers", "1", "--out", out, *spec, *flags)


def expected(base: Path) -> dict[str, tuple[xr.DataTree, bytes]]:
    """Return what each spec comes to alone: its trajectory and its findings, by the spec."""
    found = {}
    for number, spec in enumerate(SPECS):
        root = base / f"alone{number}"
        root.mkdir()
        ended = forks.call(one, root, spec, (), 0.0)
        assert ended.value == 0, ended
        tree = open_run(root / NAME)
        found[tree.attrs["spec"]] = (tree, (root / NAME / "findings.json").read_bytes())
    return found


def start(
    root: Path, chance: random.Random, alone: dict[str, tuple[xr.DataTree, bytes]]
) -> tuple[list[str], Tally[str]]:
    """Start some processes together; return what is bad, and how they ended."""
    same = chance.random() < 0.4
    spec = chance.choice(SPECS)
    plan = [
        (spec if same else chance.choice(SPECS), chance.choice(FLAGS), chance.choice((0.0, 0.3, 1)))
        for _ in range(chance.randrange(2, 6))
    ]
    printed = [root.parent / f"printed{number}" for number in range(len(plan))]
    children = [
        forks.start(one, root, *each, printed=file)
        for each, file in zip(plan, printed, strict=True)
    ]
    bad, tally = [], Tally({"processes": len(plan)})
    for child, file, each in zip(children, printed, plan, strict=True):
        ended, said = child.wait(), file.read_text(errors="replace")
        refused = ended.value == 2
        tally["refused" if refused else "done"] += 1
        if ended.hung or ended.trouble or "Traceback" in said or ended.value not in (0, 2):
            bad.append(f"{each} ended with {ended.value}: {ended.trouble or said[-2000:]}")
        elif refused and not any(reason in said for reason in REASONS):
            bad.append(f"{each} was refused: {said[-400:]}")
        file.unlink()
    if not tally["done"]:
        bad.append("nobody came through")
    if os.listdir(root) != [NAME]:
        return [*bad, f"left {sorted(os.listdir(root))}"], tally
    place = root / NAME
    tree = open_run(place)
    reference, findings = alone[tree.attrs["spec"]]
    bad += differences(tree, reference)
    bad += [f"{each.path.name} {each.what}" for each in check_run(place).damage]
    kept = place / "findings.json"
    if kept.exists() and json.loads(kept.read_bytes()) != json.loads(findings):
        bad.append("the findings are those of another run")
    return bad, tally


def torture(
    starts: int, seed: int, base: Path, seconds: float = math.inf
) -> tuple[Tally[str], list[str]]:
    """Start so often; return how the processes ended, and what was bad."""
    alone, begun = expected(base), time.monotonic()
    warm_up(next(iter(alone.values()))[0], base / "warm")
    chance = random.Random(seed)
    tally: Tally[str] = Tally()
    bad: list[str] = []
    for number in range(starts):
        root = base / "case" / "root"
        root.mkdir(parents=True)
        found, ended = start(root, chance, alone)
        tally.update(ended)
        tally["starts"] += 1
        tally["bad"] += bool(found)
        bad += [f"start {number}: {each}" for each in found]
        for each in found:
            print(f"BAD start {number}: {each}", flush=True)
        shutil.rmtree(root.parent)
        if time.monotonic() - begun > seconds:
            break
    return tally, bad


def table(tally: Tally[str]) -> str:
    """Return the numbers in words."""
    kinds = ("starts", "processes", "done", "refused", "bad")
    return "\n".join(f"{kind:22}{tally[kind]:8}" for kind in kinds)


def main() -> int:
    """Torture, print a table, and return 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attnscope-writers-") as folder:
        tally, bad = torture(options.starts, options.seed, Path(folder), options.seconds)
    print(table(tally))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
