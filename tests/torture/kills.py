"""Kills at file operations: whatever moment it is, one whole run or none, and it goes on.

    python -m tests.torture.kills --kills 500 --seed 1

Every case is a process that a preloaded library kills with SIGKILL, its workers included, at one
operation on files (a write: half-way). The moments are drawn evenly over the phases of each
scene. A case is bad if afterwards

- the folder holds anything but one run under its name and hidden leftovers of ours,
- ``open_run`` fails or reads other numbers than those of the undisturbed run so far,
- ``attnscope check`` finds damage, other than a report that was being written,
- the next command refuses the folder, or leaves something behind, or
- the run that goes on differs in a bit from the undisturbed one.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from . import forks, preload

PHASES = (
    ("set-up", r"\.run\.[0-9a-f]{16}\.attnscope"),
    ("theory", r"/run/trajectory\.zarr/theory"),
    ("report", r"/run/(?:\.?report|figures|tables)"),
    ("findings", r"/run/\.?(?:findings|written)"),
    ("checkpoints", r"/run/checkpoints"),
    ("readings", r"/run/trajectory\.zarr"),
    ("states", r"/run/runs"),
    ("manifest", r"/run/\.?run\.json"),
    ("lock", r"/run/\.writer"),
    ("folder", r""),
)
"""What an operation belongs to, by the path of its file."""


def phase_of(operation: str) -> str:
    """Return what an operation on a file belongs to."""
    what, _, path = operation.partition(" ")
    if what == "exchange":
        return "exchange"
    return next(name for name, pattern in PHASES if re.search(pattern, path))


def torture(
    kills: int, seed: int, base: Path, names: Sequence[str] = (), seconds: float = math.inf
) -> tuple[Tally, list[str]]:
    """Kill so often; return the numbers of cases by scene, and what was bad.

    Args:
        kills: how often.
        seed: of the moments.
        base: an empty folder.
        names: of the scenes; all unless given.
        seconds: after which no other kill is begun.
    """
    from .judge import Reference, judge, prepared
    from .scenes import SCENES, warm_up

    chance = random.Random(seed)
    scenes = [scene for scene in SCENES if not names or scene.name in names]
    references = {scene.name: Reference.of(scene, base) for scene in scenes}
    warm_up(references[scenes[0].name].new, base / "warm")
    # A scene with workers imports PyTorch anew in each of them.
    shares = [scene for scene in scenes for _ in range(1 if scene.name == "two workers" else 4)]
    plan = [shares[number % len(shares)] for number in range(kills)]
    tally: Tally = Tally()
    bad: list[str] = []
    begun = time.monotonic()
    for number, scene in enumerate(plan):
        if time.monotonic() - begun > seconds:
            break
        reference = references[scene.name]
        phase = chance.choice(sorted(reference.phases))
        target = chance.choice(reference.phases[phase])
        where = base / "case"
        root = prepared(reference, where)
        counter = preload.Counter(base / "counter", root, target)

        def act(counter: preload.Counter = counter, scene=scene, root: Path = root) -> int:
            counter.begin()
            return scene.act(root)

        ended = forks.call(act, printed=base / "printed")
        killed = ended.code == -9 and not ended.hung
        found = [] if killed or ended.code == 0 else [f"ended with {ended.code}: {ended.trouble}"]
        if ended.hung:
            found = ["hung"]
        verdict = forks.call(judge, scene, reference, root, printed=base / "printed")
        found += verdict.value or []
        if verdict.trouble or verdict.hung or verdict.code:
            said = (base / "printed").read_text(errors="replace")[-4000:]
            found.append(f"judging: {verdict.trouble or verdict} {said if verdict.hung else ''}")
        tally[scene.name, "killed" if killed else "ended before"] += 1
        if found:
            tally[scene.name, "bad"] += 1
            moment = f"{scene.name}, operation {target} ({counter.last}; {phase})"
            bad.append(f"{moment}: " + "; ".join(found))
            print("BAD", bad[-1], flush=True)
        shutil.rmtree(where, ignore_errors=True)
        if number % 25 == 24:
            took = time.monotonic() - begun
            print(f"{number + 1} kills, {len(bad)} bad, {took:.0f} s", flush=True)
    return tally, bad


def table(tally: Tally, bad: list[str]) -> str:
    """Return how many kills there were in each scene, and how many were bad."""
    scenes: dict[str, Tally] = defaultdict(Tally)
    for (scene, kind), count in tally.items():
        scenes[scene][kind] += count
    lines = [f"{'scene':22}{'kills':>8}{'ended before':>14}{'bad':>6}"]
    rows = {**scenes, "all": sum(scenes.values(), Tally())}
    for scene, kinds in rows.items():
        lines.append(f"{scene:22}{kinds['killed']:8}{kinds['ended before']:14}{kinds['bad']:6}")
    return "\n".join(lines)


def main() -> int:
    """Torture, print a table, and return 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenes", nargs="+", default=(), help="all unless given")
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most")
    options = parser.parse_args()
    if preload.compiler() is None:
        print("there is no C compiler here, or this is not Linux: no kills at file operations")
        return 0
    preload.start_again("tests.torture.kills")
    with tempfile.TemporaryDirectory(prefix="attnscope-kills-") as folder:
        tally, bad = torture(
            options.kills, options.seed, Path(folder), options.scenes, options.seconds
        )
    print(table(tally, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
