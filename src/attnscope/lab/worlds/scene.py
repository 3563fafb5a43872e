"""What one setting of a world came to: curves, attention over time, verdicts, and the code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnscope.claims import Finding, examine
from attnscope.lab.worlds.base import PlayStudy
from attnscope.lab.worlds.solving import solve
from attnscope.report.figure import Figure
from attnscope.results import command_line
from attnscope.results import python_lines


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention on one sentence over time.

    Args:
        title: what is attended to by what.
        caption: how to read it.
        times: on the axis that the figures have, shape ``(moment,)``.
        unit: what the times count.
        keys: the words that are looked at.
        queries: the words that look; a single one for a sentence as a whole.
        weights: shape ``(moment, query, key)``.
        groups: colour number of each key, -1 for none.
        right: which key each query should look at, -1 if that cannot be said.
    """

    title: str
    caption: str
    times: np.ndarray
    unit: str
    keys: tuple[str, ...]
    queries: tuple[str, ...]
    weights: np.ndarray
    groups: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scene:
    """Everything the page shows of one run.

    Args:
        figures: curves with theory over them.
        attention: on one sentence over time.
        findings: what the claims came to.
        outcome: how the run ended, in a sentence that can be read aloud.
        python: the Python that makes exactly this.
        command: the command line that does.
        seconds: of the run itself, by the clock.
        processor_seconds: of the run itself, of the processor.
        drawing_seconds: theory, claims and figures besides.
    """

    figures: tuple[Figure, ...]
    attention: Attention
    findings: tuple[Finding, ...]
    outcome: str
    python: str
    command: str
    seconds: float
    processor_seconds: float
    drawing_seconds: float


def scene(study: PlayStudy, stopped: Callable[[], bool] = lambda: False) -> Scene:
    """Run a study in memory and draw it.

    Raises:
        Stopped: ``stopped`` said so.
        AttnscopeError: the run broke down.
    """
    solved = solve(study, stopped)
    tree = solved.tree
    found = tuple(examine(claim, tree) for claim in study.claims())
    figures, attention = tuple(study.figures(tree)), study.attention(tree)
    return Scene(
        figures,
        attention,
        found,
        f"{study.outcome(tree, found)} {verdicts(found)}",
        python_lines(study),
        command_line(study),
        solved.seconds,
        solved.processor_seconds,
        solved.elapsed() - solved.seconds,
    )


def verdicts(found: Sequence[Finding]) -> str:
    """Say how many claims hold, as in "4 of 5 claims hold."."""
    held = sum(finding.verdict == "holds" for finding in found)
    if held == len(found):
        return f"All {held} claims hold."
    return f"{held} of {len(found)} claims hold."
