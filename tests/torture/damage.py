"""Damaged run folders: what is read of them is what was written, or a sentence that names a file.

    python -m tests.torture.damage --cases 1000 --seed 1

Every case is a copy of a run's folder (of a study and of a watched model, finished and not) with
one file of it flipped, cut, emptied, overwritten, deleted, exchanged for another one of the folder,
or replaced by a folder, a pipe or a link; or with a folder in it that is gone or a file; or with
something that nobody may read. A case is bad if anything

- reads other numbers than were written, or findings that were not kept, without a word;
- ends in a traceback instead of a sentence, or hangs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import forks
from .scenes import NAME, STUDY, command, often, run, watch

sys.path.insert(0, str(Path(__file__).parents[1]))

import xarray as xr

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder, open_run
from attnscope.trajectory.check import check_run

NOBODY = 65534
HUNG = 120
"""Seconds after which a case is taken to hang, and its process ended."""


def flip(file: Path, chance: random.Random) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def cut(file: Path, chance: random.Random) -> None:
    """Lose the end."""
    data = file.read_bytes()
    file.write_bytes(data[: chance.randrange(len(data))])


def empty(file: Path, chance: random.Random) -> None:
    """Lose everything but the name."""
    file.write_bytes(b"")


def zeros(file: Path, chance: random.Random) -> None:
    """Be as long and hold zeros, as after a power loss."""
    file.write_bytes(bytes(file.stat().st_size))


def noise(file: Path, chance: random.Random) -> None:
    """Hold anything."""
    file.write_bytes(chance.randbytes(chance.randrange(1, 4096)))


def delete(file: Path, chance: random.Random) -> None:
    """Be gone."""
    file.unlink()


def swap(file: Path, chance: random.Random) -> None:
    """Change places with a file of the same kind, or with any."""
    root = next(parent for parent in file.parents if parent.name == NAME)
    others = [each for each in files(root) if each.read_bytes() != file.read_bytes()]
    if is_open(file):  # Two that are not full and not told of yet pass for each other.
        others = [each for each in others if not is_open(each)]
    alike = [each for each in others if each.suffix == file.suffix and each.name != "run.json"]
    other = chance.choice(alike or others)
    one, two = file.read_bytes(), other.read_bytes()
    file.write_bytes(two)
    other.write_bytes(one)


def folder(file: Path, chance: random.Random) -> None:
    """Be a folder."""
    file.unlink()
    file.mkdir()


def pipe(file: Path, chance: random.Random) -> None:
    """Be a pipe, which nobody writes to."""
    file.unlink()
    os.mkfifo(file)


def loop(file: Path, chance: random.Random) -> None:
    """Be a link to itself."""
    file.unlink()
    file.symlink_to(file)


def flat(file: Path, chance: random.Random) -> None:
    """Have the folder around it be a file."""
    parent = file.parent
    if parent.name == NAME:
        file.unlink()
        return
    shutil.rmtree(parent)
    parent.write_bytes(b"?")


def lost(file: Path, chance: random.Random) -> None:
    """Have the folder around it be gone."""
    shutil.rmtree(file.parent) if file.parent.name != NAME else file.unlink()


def forbid(file: Path, chance: random.Random) -> None:
    """Let nobody read it."""
    file.chmod(0)


def forbid_folder(file: Path, chance: random.Random) -> None:
    """Let nobody look into the folder around it."""
    file.parent.chmod(0)


KINDS: tuple[Callable[[Path, random.Random], None], ...] = (
    flip,
    cut,
    empty,
    zeros,
    noise,
    delete,
    swap,
    folder,
    pipe,
    loop,
    flat,
    lost,
    forbid,
    forbid_folder,
)


def files(root: Path) -> list[Path]:
    """Return the files of a run."""
    return sorted(
        path for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")
    )


def is_open(file: Path) -> bool:
    """Return whether a file is a chunk that a run which has not ended would write again."""
    root = next(parent for parent in file.parents if parent.name == NAME)
    parts = file.relative_to(root).parts
    if parts[1:2] != ("observables",) or "c" not in parts[3:4]:
        return False
    folder = RunFolder(root)
    alone = parts[2].split("_")[0] == "time"
    run, number = (0, int(parts[4])) if alone else (int(parts[4]), int(parts[5]))
    state = folder.state(run)
    told = len(state.get("sums", {}).get("/".join(parts[1:3]), "")) // 8
    return number >= told


@dataclass(frozen=True)
class Whole:
    """A run that nothing happened to."""

    name: str
    path: Path
    tree: xr.DataTree


def make(base: Path) -> list[Whole]:
    """Make the runs that will be damaged, in processes of their own."""
    found = []
    for name, act in {
        "study": run,
        "study, unfinished": half_run,
        "watched": watch,
        "watched, unfinished": half_watched,
    }.items():
        root = base / name.replace(", ", "-")
        root.mkdir()
        ended = forks.call(act, root)
        assert ended.code in (0, -9), ended.trouble
        found.append(Whole(name, root / NAME, open_run(root / NAME)))
    return found


def half_run(root: Path) -> int:
    """Stop after the second checkpoint of the second run."""
    from attnscope.trajectory import store

    often()
    real, kept = store.save_checkpoint, [0]

    def save(*args: object) -> None:
        real(*args)  # type: ignore[arg-type]
        kept[0] += 1
        if kept[0] == 7:
            os.kill(os.getpid(), 9)

    store.save_checkpoint = save  # type: ignore[assignment]
    return command("run", STUDY, "--workers", "1", "--out", str(root / NAME))


def half_watched(root: Path) -> int:
    """Stop while the recording is being closed."""
    from attnscope.trajectory import channel

    real, told = channel.tell_length, [0]

    def tell(*args: object) -> None:
        told[0] += 1
        if told[0] == 3:
            os.kill(os.getpid(), 9)
        real(*args)  # type: ignore[arg-type]

    channel.tell_length = tell  # type: ignore[assignment]
    return watch(root)


def same(one: xr.DataTree, other: xr.DataTree) -> bool:
    """Return whether two trees hold the same, but for where they lie."""
    return set(one.children) == set(other.children) and all(
        one[name].to_dataset().identical(other[name].to_dataset()) for name in other.children
    )


def try_all(path: Path, whole: Whole, out: Path) -> tuple[list[str], bool]:
    """Use a damaged run in every way; return what is bad, and whether damage was told."""
    bad: list[str] = []
    told = [False]

    def attempt(name: str, act: Callable[[], object]) -> object:
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                answer = act()
            if "Traceback" in said.getvalue():
                bad.append(f"{name}: {said.getvalue().splitlines()[-1]}")
            if isinstance(answer, int) and answer:
                told[0] = True
            return answer
        except AttnscopeError as error:
            told[0] = True
            if not str(error).strip():
                bad.append(f"{name}: an empty sentence")
        except Exception:
            bad.append(f"{name}: {traceback.format_exc(limit=-3)}")
        return None

    tree = attempt("open_run", lambda: open_run(path))
    if isinstance(tree, xr.DataTree) and not same(tree, whole.tree):
        bad.append("open_run reads other numbers")
    health = attempt("check_run", lambda: check_run(path))
    told[0] |= bool(getattr(health, "damage", ()))
    attempt("open_run, allow_damaged", lambda: open_run(path, allow_damaged=True))
    attempt("attnscope check", lambda: command("check", str(path)))
    attempt("attnscope show", lambda: command("show", str(path)))
    attempt("attnscope claims", lambda: command("claims", "--runs", str(path.parent)))
    if isinstance(tree, xr.DataTree):
        table = out / "table.csv"
        attempt(
            "attnscope export",
            lambda: command("export", str(path), "--to", "csv", "--out", str(table)),
        )
        attempt("findings", lambda: attnscope.findings(tree))
        attempt("write_report", lambda: attnscope.write_report(tree, out / "report"))
    return bad, told[0]


def one_case(
    whole: Whole, kind: Callable[[Path, random.Random], None], number: int, where: Path, seed: int
) -> list[str]:
    """Damage a copy and use it; return what is bad."""
    chance = random.Random(f"{seed} {number}")
    path = Path(shutil.copytree(whole.path, where / "runs" / NAME))
    file = chance.choice(files(path))
    kind(file, chance)
    limited = kind.__name__.startswith("forbid") and os.geteuid() == 0
    out = where / "out"
    out.mkdir()
    if limited:  # The administrator may read everything.
        for each in [where, *where.rglob("*")]:
            os.chown(each, NOBODY, NOBODY, follow_symlinks=False)
        os.seteuid(NOBODY)
    name = file.relative_to(path)
    try:
        bad, told = try_all(path, whole, out)
    finally:
        if limited:
            os.seteuid(0)
    # Without a checkpoint a run begins anew, to the same bits.
    harmless = kind in (delete, lost) and "checkpoints" in name.parts
    if not told and not harmless:
        bad.append("nobody noticed")
    return [f"{whole.name}, {kind.__name__} {name} (case {number}): {each}" for each in bad]


def several(
    wholes: list[Whole], numbers: range, base: Path, seed: int
) -> tuple[dict[str, int], list[str]]:
    """Do some cases in this process."""
    from attnscope.catalogue import load

    load(STUDY)
    for whole in wholes:  # What it imports may lie where not everybody may read.
        with contextlib.suppress(AttnscopeError):
            attnscope.write_report(whole.tree, Path(tempfile.mkdtemp(dir=base)))
    tally: Tally[str] = Tally()
    bad: list[str] = []
    for number in numbers:
        kind = KINDS[number % len(KINDS)]
        whole = wholes[number // len(KINDS) % len(wholes)]
        where = Path(tempfile.mkdtemp(dir=base))
        where.chmod(0o755)
        signal.alarm(HUNG)
        found = one_case(whole, kind, number, where, seed)
        signal.alarm(0)
        tally[kind.__name__] += 1
        tally[f"{kind.__name__} bad"] += bool(found)
        bad += found
        for folder in [where, *(each for each in where.rglob("*") if each.is_dir())]:
            folder.chmod(0o755)
        shutil.rmtree(where, ignore_errors=True)
    return dict(tally), bad


def torture(
    cases: int, seed: int, base: Path, seconds: float = math.inf
) -> tuple[Tally[str], list[str]]:
    """Damage so many folders; return the numbers of cases by kind, and what was bad."""
    base.chmod(0o755)
    wholes = make(base)
    tally: Tally[str] = Tally()
    bad: list[str] = []
    begun, step = time.monotonic(), 56
    for first in range(0, cases, step):
        numbers = range(first, min(first + step, cases))
        ended = forks.start(several, wholes, numbers, base, seed).wait(step * forks.HUNG)
        if ended.value is None:
            what = "hung" if ended.code == -signal.SIGALRM else ended.trouble
            bad.append(f"one of the cases {numbers}: {what}")
            print("BAD", bad[-1], flush=True)
            continue
        tally.update(ended.value[0])
        bad += ended.value[1]
        for each in ended.value[1]:
            print("BAD", each, flush=True)
        took = time.monotonic() - begun
        print(f"{numbers.stop} damages, {len(bad)} bad, {took:.0f} s", flush=True)
        if took > seconds:
            break
    return tally, bad


def table(tally: Tally[str]) -> str:
    """Return how many folders were damaged in each way, and how many of them were bad."""
    lines = [f"{'damage':22}{'cases':>8}{'bad':>6}"]
    lines += [
        f"{name.replace('_', ' a '):22}{tally[name]:8}{tally[f'{name} bad']:6}"
        for name in (kind.__name__ for kind in KINDS)
    ]
    return "\n".join(lines)


def main() -> int:
    """Torture, print a table, and return 1 if anything was bad."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attnscope-damage-") as folder:
        tally, bad = torture(options.cases, options.seed, Path(folder), options.seconds)
    print(table(tally))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
