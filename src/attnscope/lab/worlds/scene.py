"""What one setting of a world came to: curves, attention over time, verdicts, and the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from attnscope.claims import Finding, examine_all
from attnscope.experiment import AttentionOverTime, Playable, solve
from attnscope.report import Figure
from attnscope.results import command_line, python_lines


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
    attention: AttentionOverTime
    findings: tuple[Finding, ...]
    outcome: str
    python: str
    command: str
    seconds: float
    processor_seconds: float
    drawing_seconds: float


def scene(study: Playable, stopped: Callable[[], bool] = lambda: False) -> Scene:
    """Run a study in memory and draw it.

    Raises:
        Stopped: ``stopped`` said so.
        AttnscopeError: the run broke down.
    """
    solved = solve(study, stopped)
    run = study.read(solved.tree)
    # On a page with several papers a source has to say which one it is of.
    paper = re.sub(r"([a-z]+)(\d+).*", lambda m: f"{m[1].title()} {m[2]}", study.name())
    found = tuple(
        replace(finding, source=f"{paper}, {finding.source}")
        for finding in examine_all(study.claims(), run)
    )
    figures, attention = tuple(study.figures(run)), study.attention(run)
    return Scene(
        figures,
        attention,
        found,
        f"{study.outcome(run, found)} {verdicts(found)}",
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
