"""What fuzzers share: cases by number, mutated bytes, and what counts as a finding.

A case is made from a seed and its number alone, so a finding is repeated by
``--seed S --only NUMBER``. A sentence (``AttnscopeError``) or a result is right; anything else, and
a case that does not end, is a finding.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from attnscope.errors import AttnscopeError

PATIENCE = 30
"""Seconds of a processor that a case may take; how busy the machine is does not count."""
BLOCKED = 1200
"""Seconds after which a case that uses no processor, such as one that waits for a pipe, is over."""

NASTY = (
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x80",
    b"\xed\xa0\x80",
    b"\r",
    b"\n",
    b"\t",
    b'"',
    b"\\ud800",
    b"9" * 5000,
    b"-1",
    b"NaN",
    b"1e400",
    b"null",
    b"[" * 3000,
    b"{",
    b"(",
    b")",
    b"|||",
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"BZh9",
    b"\xfd7zXZ\x00",
    b"a" * 300,
    b"../",
    b"&amp;",
    b"<!DOCTYPE x>",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x00\x00\x00\x80",
)
"""What readers of text, numbers and archives tend to stumble over."""


class TooLong(Exception):
    """A case that did not end."""


@dataclass
class Tally:
    """What came of the cases."""

    results: int = 0
    sentences: int = 0
    findings: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def cases(self) -> int:
        """All of them."""
        return self.results + self.sentences + len(self.findings)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to four changes; sometimes none."""
    changed = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        at = rng.randrange(len(changed) + 1)
        to = min(len(changed), at + rng.choice((1, 1, 4, 16, 200)))
        match rng.randrange(8):
            case 0 if changed:
                changed[min(at, len(changed) - 1)] ^= 1 << rng.randrange(8)
            case 1:
                del changed[at:to]
            case 2:
                changed[at:at] = rng.choice(NASTY)
            case 3:
                changed[at:to] = rng.choice(NASTY)
            case 4:
                del changed[at:]
            case 5:
                changed[at:at] = changed[at:to] * rng.choice((1, 2, 50))
            case 6:
                changed[at:to] = rng.randbytes(to - at)
            case _:
                digits = [i for i, byte in enumerate(changed) if 48 <= byte < 58]
                if digits:
                    changed[rng.choice(digits)] = rng.choice(b"0123456789-.e")
    return bytes(changed)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Turn a case that does not end into an exception."""

    def late(*_: object) -> None:
        raise TooLong("it does not end")

    before = {sign: signal.signal(sign, late) for sign in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    signal.setitimer(signal.ITIMER_REAL, BLOCKED)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for sign, handler in before.items():
            signal.signal(sign, handler)


def fuzz(
    case: Callable[[random.Random], tuple[str, Callable[[], object]]],
    numbers: range,
    seed: int,
    seconds: float = float("inf"),
) -> Tally:
    """Try cases one after the other; print each finding as it comes.

    Args:
        case: makes a case from random numbers: its kind, and what to call.
        numbers: of the cases.
        seed: of all of them.
        seconds: after so many no new case begins.
    """
    tally, start = Tally(), time.monotonic()
    for number in numbers:
        if time.monotonic() - start > seconds:
            break
        kind, attempt = case(random.Random(f"{seed} {number}"))
        tally.kinds[kind] += 1
        try:
            with limited(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                attempt()
            tally.results += 1
        except AttnscopeError as error:
            tally.sentences += 1
            if not str(error).strip():
                tally.findings.append(f"{number} ({kind}): an empty sentence")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{place.filename.rsplit('/', 1)[-1]}:{place.lineno}"
            said = f"{type(error).__name__}: {str(error)[:500]}"
            tally.findings.append(f"{number} ({kind}): {said} at {where}")
            print(f"finding at seed {seed}, case {tally.findings[-1]}", file=sys.__stderr__)
    return tally


def options(description: str, cases: int, **more: str) -> argparse.Namespace:
    """Read the words of a fuzzer's command line; ``more`` are numbers of its own, with a help."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cases", type=int, default=cases, help=f"how many (default: {cases})")
    parser.add_argument("--seed", type=int, default=1, help="of all cases (default: 1)")
    parser.add_argument("--only", type=int, help="number of the one case to try")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most")
    for name, text in more.items():
        parser.add_argument(f"--{name}", type=int, default=0, help=text)
    return parser.parse_args()


def numbers(given: argparse.Namespace) -> range:
    """Return the numbers of the cases that were asked for."""
    return range(given.cases) if given.only is None else range(given.only, given.only + 1)


def report(name: str, tally: Tally) -> int:
    """Print what came of it; return the exit code."""
    print(
        f"{name}: {tally.cases:,} cases, {tally.results:,} results, {tally.sentences:,} sentences, "
        f"{len(tally.findings)} findings"
    )
    for kind, count in sorted(tally.kinds.items()):
        print(f"  {kind:24} {count:6,}")
    return 1 if tally.findings else 0
