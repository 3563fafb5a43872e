"""What ``attnscope`` says before it is asked for anything: what there is to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

DOORS = """How does attention learn, and why did it learn this?

You train a model         in your training script, three lines:
                              with attnscope.watch(model, "runs/mine", probe=batch) as scope:
                                  ...              # every training step, as it was, and then
                                  scope.step(loss)
                          weights you have saved: attnscope checkpoints DIR --out RUN

You have a theorem        attnscope new mine.py && attnscope run mine.py
                          or see one that stands: attnscope run lu2021.sen --scale quick

You have data             attnscope predict mine.csv      what attention will look at

You teach or are curious  attnscope lab      training in the browser, with a slider

attnscope list            the studies of papers there are
attnscope --help          every command
"""

GROUPS = {
    "studies": ("list", "run", "new", "sweep", "claims"),
    "your own model and data": ("checkpoints", "predict", "topics", "data", "models"),
    "runs that are there": ("show", "report", "compare", "export", "check"),
}
"""Commands under a heading; those that are in none come last."""


def doors(folder: Path = Path("runs")) -> str:
    """Return what there is to do next; runs that are there are named."""
    there = sorted(folder.glob("*/run.json"), key=_changed) if folder.is_dir() else []
    if not there:
        return DOORS.rstrip()
    newest = there[-1].parent
    count = "1 run" if len(there) == 1 else f"{len(there)} runs"
    return f"{DOORS}\n{count} in {folder}; the newest: attnscope show {newest}"


def overview(says: Mapping[str, str]) -> str:
    """Return the help of the command line: every command and what it does."""
    width = max(map(len, says)) + 2
    grouped = {title: [verb for verb in verbs if verb in says] for title, verbs in GROUPS.items()}
    rest = [verb for verb in says if not any(verb in verbs for verbs in grouped.values())]
    lines = ["usage: attnscope COMMAND ...", ""]
    lines += ["A laboratory for how attention learns: trajectories, theory, verdicts.", ""]
    for title, verbs in {**grouped, "more": rest}.items():
        lines += [f"{title}:", *(f"  {verb:{width}}{says[verb]}" for verb in verbs), ""]
    lines.append("attnscope COMMAND --help says more; attnscope run STUDY --help lists settings.")
    lines.append("attnscope -V says the version; NO_COLOR=1 takes the colours away.")
    return "\n".join(lines)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
