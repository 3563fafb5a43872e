"""``attnscope check RUN...``: whether runs are whole, and what of them is still good."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.cli.arguments import Parser
from attnscope.cli.folders import is_sweep
from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from attnscope.trajectory.check import Health

SAYS = "whether runs are whole: attnscope check runs/* --repair"
SHOWN = 8
"""Damaged files of a run that are listed; the others are counted."""


def arguments(parser: Parser, words: list[str]) -> None:
    """Add the flags."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="rebuild theory, findings and report from the readings, and let damaged runs of a "
        "study begin anew",
    )


def call(options: Namespace) -> int:
    """Verify runs; return 1 if one of them is damaged."""
    from attnscope.cli.terminal import say
    from attnscope.repair import repair_run
    from attnscope.trajectory.check import check_run

    bad = 0
    for run in options.runs:
        if is_sweep(run):
            bad += _check_sweep(run, repair=options.repair)
            continue
        try:
            health = check_run(run)
            if not health.whole or health.left:
                _describe(health)
                if options.repair:
                    for done in repair_run(run):
                        say(f"  {done}")
                    health = check_run(run)
            if health.whole:
                kept = "whole" if health.checked else "whole, as far as one can tell"
                why = "" if health.checked else " (written by a version without checksums)"
                say(f"{run}: {kept}{why}", "green")
            else:
                bad += 1
        except AttnscopeError as error:
            say(f"{run}: {error}", "red")
            bad += 1
    return 1 if bad else 0


def _check_sweep(path: str, *, repair: bool) -> bool:
    """Verify a sweep, all its points; return whether it is damaged."""
    from attnscope.cli.terminal import say
    from attnscope.sweeps.check import check_sweep, repair_sweep

    try:
        health = check_sweep(path)
        if health.damage or health.left:
            count = len(health.damage)
            say(f"{path}: {count} damaged {'file' if count == 1 else 'files'}", "red" * (count > 0))
            for each in health.damage[:SHOWN]:
                say(f"  {each.path.name} {each.what}")
            if count > SHOWN:
                say(f"  and {count - SHOWN} more")
            if health.left:
                say(f"  {len(health.left)} half-written files of a process that was killed")
            if repair:
                for done in repair_sweep(path):
                    say(f"  {done}")
                health = check_sweep(path)
        if health.whole:
            say(f"{path}: whole, a sweep of {health.points} points", "green")
    except AttnscopeError as error:
        say(f"{path}: {error}", "red")
        return True
    return not health.whole


def _describe(health: Health) -> None:
    from attnscope.cli.terminal import say

    if health.damage:
        count = len(health.damage)
        say(f"{health.path}: {count} damaged {'file' if count == 1 else 'files'}", "red")
        for each in health.damage[:SHOWN]:
            try:
                where: Path | str = each.path.relative_to(health.path)
            except ValueError:
                where = each.path
            say(f"  {where} {each.what}")
        if count > SHOWN:
            kinds = Counter(each.kind for each in health.damage[SHOWN:])
            rest = ", ".join(f"{number} of the {kind}" for kind, number in kinds.items())
            say(f"  and {rest}")
        say(f"  still good: {health.good()}")
    if health.left:
        say(f"  {len(health.left)} half-written files of a process that was killed")
