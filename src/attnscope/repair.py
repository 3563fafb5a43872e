"""Putting a damaged run right: what follows from its readings is made again from them.

Theory, findings, report and figures follow from the readings and are rebuilt. Readings that are
damaged cannot be, but a run of a study can be run again: its state is set back, and the same
command does that run anew, bit for bit. Nothing is ever made up.
"""

from __future__ import annotations

from pathlib import Path

from attnscope.catalogue import of_tree
from attnscope.errors import AttnscopeError
from attnscope.experiment.runner import write_theory
from attnscope.results import keep_findings, write_report
from attnscope.trajectory import Lock, RunFolder, is_watched, open_run
from attnscope.trajectory.check import Health, check_run
from attnscope.trajectory.inventory import image_endings, tidy
from attnscope.trajectory.lengths import settle
from attnscope.trajectory.manifest import update_manifest
from attnscope.trajectory.staging import clear
from attnscope.trajectory.tree import run_status


def repair_run(path: str | Path) -> list[str]:
    """Rebuild what can be rebuilt; return what was done, in sentences.

    Raises:
        Busy: somebody is writing there.
        AttnscopeError: it cannot be repaired; the message says why.
    """
    folder = RunFolder(Path(path))
    clear(folder.path.parent)
    with Lock(folder.path, "attnscope check --repair"):
        health = check_run(path)
        if not health.manifest:
            raise AttnscopeError(
                f"'{folder.manifest_path}' {health.damage[0].what}: it cannot be rebuilt, since "
                "only it says what the arrays are. Expected a copy of it from elsewhere."
            )
        done = [f"took away {each.name}, half written" for each in tidy(folder)]
        _check_possible(folder, health)
        if is_watched(health.manifest):
            settle(folder.store, folder.state(0).get("recorded", {}))
        done += _set_back(folder, health)
        if not health.runs():
            done += _rebuild(folder, health)
    return done


def _check_possible(folder: RunFolder, health: Health) -> None:
    lost = [
        each
        for each in health.damage
        if each.kind in ("readings", "data") and (each.run is None or is_watched(health.manifest))
    ]
    if lost:
        advice = (
            "open_run(..., allow_damaged=True) opens the rest."
            if is_watched(health.manifest)
            else "Run the study again: the same command with --again."
        )
        raise AttnscopeError(
            f"'{lost[0].path}' {lost[0].what}: what was recorded there cannot be made up. {advice}"
        )


def _set_back(folder: RunFolder, health: Health) -> list[str]:
    """Let damaged runs of a study begin anew the next time."""
    done = []
    for run in health.runs():
        which = health.manifest["runs"][run]
        folder.checkpoint_path(run).unlink(missing_ok=True)
        folder.write_state(run, {})
        done.append(
            f"set {which['case']}, seed {which['seed']} back to its beginning: the same command "
            "with --resume runs it again"
        )
    for each in health.damage:
        if each.run is not None and each.kind == "readings":
            each.path.unlink(missing_ok=True)  # It is nothing any more, and will be made again.
    if done:
        states = [folder.state(run) for run in range(len(health.manifest["runs"]))]
        status = run_status(health.manifest, states)
        update_manifest(folder, theory=False, arrays=_founded(health), status=status)
    return done


def _founded(health: Health) -> list[str]:
    """Return the arrays without those of theory, so that the run opens without them."""
    return [name for name in health.manifest["arrays"] if not name.startswith("theory/")]


def _rebuild(folder: RunFolder, health: Health) -> list[str]:
    """Make again what follows from the readings."""
    kinds = {each.kind for each in health.damage}
    done = []
    if "theory" in kinds:
        update_manifest(folder, theory=False, arrays=_founded(health))
        write_theory(folder, of_tree(open_run(folder.path)))
        done.append("laid theory over the readings again")
    if kinds & {"theory", "report"}:
        tree = open_run(folder.path)
        found = keep_findings(tree)
        write_report(tree, found=found, figures=image_endings(folder))
        done.append("decided the claims and wrote the report again")
    return done
