"""Strange command lines, specs and environments: a result or a sentence, never a traceback.

    python -m tests.torture.fuzz_cli --cases 10000 --seed 1
    python -m tests.torture.fuzz_cli --environments 300 --seed 1

Command lines go through the real parser in this process; nothing is trained, served or fetched.
Specs are those that manifests of runs keep, with values changed. Environments are real processes.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attnscope import catalogue, cli, experiment
from attnscope.errors import AttnscopeError
from attnscope.experiment.spec import settings

from .fuzzing import Tally, fuzz, mutated, numbers, report
from .fuzzing import options as common

WORDS = (
    *("0", "-1", "1", "2", "nan", "inf", "-inf", "1e400", "1e-400", "9" * 30, "9" * 5000),
    *("", " ", "None", "True", "x", "é", "\ud800", "\udce9", "a\nb", "a" * 300, "a/" * 3000),
    *("~nobody/x", "..", "/", "/dev/null", "/dev/full", "/proc/self/mem", "-", "--", "--help"),
    *("--seeds", "--out", "quick", "paper", "flow", "descent", "adam", "[1]", "{}", "mine.py"),
    *("1,2", "1 2", "lu2021.sen", "sst2", "*", "=", "=1", "0x10", "١", "1_000", "None None"),
)
"""Words that stand where a value or a flag is expected."""

FLAGS = (
    *("--scale", "--out", "--workers", "--resume", "--report", "--no-report", "--data-dir"),
    *("--max-rows", "--max-bytes", "--max-runs", "--again", "--overwrite", "--to", "--runs"),
    *("--host", "--port", "--no-open", "--topics", "--passes", "--vocabulary", "--seed", "--kind"),
    *("--checkpoints", "--model", "--record", "--probe", "--attention", "--sheet", "--repair"),
)
VALUES = (
    *(0, -1, 1, 2, 10**9, 10**9 + 1, 10**30, 10**400, math.nan, math.inf, -math.inf, 1e308, 1e-320),
    *("", "x", "\0", "\ud800", "a" * 300, None, True, False, [], [0], [1.0, "x"], {}, {"a": 1}),
)
"""What JSON, or somebody's Python, may hold where a setting is expected."""


class Ran(AttnscopeError):
    """The command line was taken: something would be run now."""


def would_run(*_: object, **__: object) -> None:
    """Stand in the place of what trains, serves or fetches."""
    raise Ran("this would run")


@contextlib.contextmanager
def harmless(room: Path) -> Iterator[None]:
    """Let nothing be trained, served or fetched, and nothing be written outside a folder."""
    before = os.getcwd()
    os.chdir(room)
    places = {"HOME": str(room), "XDG_CACHE_HOME": str(room), "ATTNSCOPE_DATA": str(room)}
    try:
        with (
            patch.dict(os.environ, places),
            patch.object(experiment, "run", would_run),
            patch("attnscope.lab.server.serve", would_run),
            patch("attnscope.topics.lda.fit_topics", would_run),  # `topics /` reads a whole disk.
            patch("attnscope.datasets.fetch.connect", would_run),
            patch("attnscope.watching.checkpoints.from_checkpoints", would_run),
        ):
            yield
    finally:
        os.chdir(before)


def called(words: list[str]) -> None:
    """Call the command line; raise what it says, and whatever it should not."""
    out, err = io.StringIO(), io.StringIO()
    kept = {name: value for name, value in os.environ.items() if name.startswith("ATTNSCOPE_")}
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code: Any = cli.main(words)
    except SystemExit as left:
        code = left.code
    finally:
        for name in [name for name in os.environ if name.startswith("ATTNSCOPE_")]:
            del os.environ[name]
        os.environ.update(kept)
    if code not in (0, 1, 2):
        raise ValueError(f"exit code {code!r}")
    if "Traceback" in out.getvalue() + err.getvalue():
        raise ValueError("a traceback was printed")
    if code:
        said = (out.getvalue() + err.getvalue()).strip()
        if not said:
            raise ValueError(f"exit code {code} without a word")
        raise AttnscopeError(said)


def command(rng: random.Random) -> tuple[str, Callable[[], object]]:
    """Make a command line."""
    verb = rng.choice((*cli.VERBS, "run", "run", "run", "run", "lsit", ""))
    words = [verb]
    if verb == "run":
        name = rng.choice(catalogue.names())
        words.append(name if rng.random() < 0.9 else rng.choice(WORDS))
        known = [f"--{field.replace('_', '-')}" for field in settings(catalogue.load(name)())]
    else:
        known = list(FLAGS)
        if rng.random() < 0.7:
            first = ("sst2", "check", "get", "x.py", "lu2021", "pathfinder", *WORDS)
            words.append(rng.choice(first))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        flag = rng.choice(known if rng.random() < 0.8 else (*FLAGS, *WORDS))
        if rng.random() < 0.1:
            flag = mutated(flag.encode("utf-8", "replace"), rng).decode("latin-1")[:200]
        value = rng.choice(WORDS)
        words += [f"{flag}={value}"] if rng.random() < 0.2 else [flag, value]
    words = [word.replace("\0", "") for word in words]  # No system passes a NUL.
    return f"command {verb}", lambda: called(words)


def spec(rng: random.Random) -> tuple[str, Callable[[], object]]:
    """Make a spec as a manifest or a script would."""
    study = catalogue.load(rng.choice(catalogue.names()))
    known = study().to_json()
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice([*known, "engine", "training", "task", "nothing"])
        known[name] = rng.choice(VALUES)
    if rng.random() < 0.3:
        known = {name: known[name] for name in rng.sample(list(known), len(known) // 2)}

    def make() -> object:
        made = study.from_json(known) if rng.random() < 0.5 else study.at("quick", **known)
        json.dumps(made.to_json())
        return made.identity(), made.departures(), made.describe(), made.runs()

    return "spec", make


def either(rng: random.Random) -> tuple[str, Callable[[], object]]:
    """Make a command line or a spec."""
    return spec(rng) if rng.random() < 0.6 else command(rng)


def run(cases: range, seed: int, seconds: float = float("inf")) -> Tally:
    """Try command lines and specs."""
    with tempfile.TemporaryDirectory() as room, harmless(Path(room)):
        return fuzz(either, cases, seed, seconds)


ENVIRONMENT: dict[str, tuple[str | None, ...]] = {
    "LC_ALL": (None, "C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1", "nonsense"),
    "PYTHONUTF8": (None, "0", "1"),
    "PYTHONCOERCECLOCALE": (None, "0"),
    "PYTHONIOENCODING": (None, "latin-1", "ascii", "utf-16", "ascii:strict", "cp1252"),
    "COLUMNS": (None, "0", "1", "20", "-5", "100000", "x"),
    "TERM": (None, "dumb", "", "xterm-256color", "nonsense"),
    "HOME": (None, "", "/", "/nonexistent", "relative"),
    "XDG_CACHE_HOME": (None, "", "relative", "/dev/null", "/nonexistent/x"),
    "ATTNSCOPE_DATA": (None, "", "~nobody/x", "/dev/null", "a" * 5000, "\udce9"),
    "ATTNSCOPE_MAX_ROWS": (None, None, "0", "x", "9" * 5000, "10"),
    "ATTNSCOPE_MAX_RUNS": (None, None, "-1", "1", "١"),
    "TMPDIR": (None, "/nonexistent", "/dev/null"),
    "NO_COLOR": (None, "1"),
    "FORCE_COLOR": (None, "1"),
    "PYTHONOPTIMIZE": (None, "1", "2"),
}
COMMANDS = (
    ["list"],
    ["--help"],
    ["data"],
    ["data", "sst2"],
    ["data", "check", "sst2"],
    ["claims"],
    ["claims", "--runs", "é\udce9"],
    ["show", "\udce9"],
    ["lsit"],
    ["new", "é.py"],
    ["run", "lu2021.sen", "--help"],
    ["run", "lu2021.sen", "--variance", "-1"],
    ["run", "lu2021.sen", "--seeds", "1000000000"],
    ["topics", "é.txt", "--topics", "2"],
)
PROGRAM = (sys.executable, "-P", "-m", "attnscope")
STREAMS = (
    *("", "", "", ">/dev/full", ">/dev/full 2>&1", "2>/dev/full", "| head -c 1"),
    *(">&-", "2>&-", "<&-", ">&- 2>&- <&-"),
)


def in_environment(rng: random.Random) -> tuple[str, Callable[[], object]]:
    """Make a process in a strange environment."""
    words, streams = rng.choice(COMMANDS), rng.choice(STREAMS)
    path = os.environ["PATH"]
    chosen = {name: rng.choice(values) for name, values in ENVIRONMENT.items()}
    given = {name: value for name, value in chosen.items() if value is not None}

    def start() -> None:
        with tempfile.TemporaryDirectory() as room:
            done = subprocess.run(
                # The shell's own exit code is that of attnscope, head or not.
                ["bash", "-c", f'set -o pipefail; "$@" {streams}', "-", *PROGRAM, *words],
                cwd=room,
                env={"PATH": path, **given},
                capture_output=True,
                check=False,
            )
        printed = (done.stdout + done.stderr).decode("utf-8", "replace")
        said = "".join(letter for letter in printed if letter != "\0")  # UTF-16 has every second
        if "Traceback" in said or "Exception ignored" in said or "Warning" in said:
            raise ValueError(f"{printed[-300:]!r} of {words} {streams} {given}")
        if done.returncode not in (0, 1, 2):
            raise ValueError(f"{words} {streams} {given}: exit code {done.returncode}")
        if done.returncode:
            raise AttnscopeError(printed or "(to a stream that is closed)")

    return f"environment {words[0]} {streams}", start


def environments(cases: range, seed: int, seconds: float = float("inf")) -> Tally:
    """Start processes in strange environments."""
    return fuzz(in_environment, cases, seed, seconds)


def main() -> int:
    """Try as many cases as the command line asks for."""
    given = common(
        __doc__ or "", 10_000, environments="how many processes in strange environments instead"
    )
    if given.environments:
        given.cases = given.environments
        return report("environments", environments(numbers(given), given.seed, given.seconds))
    return report("command lines and specs", run(numbers(given), given.seed, given.seconds))


if __name__ == "__main__":
    sys.exit(main())
