"""What is left after an interruption, held against the run that nobody disturbed."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from attnscope.errors import AttnscopeError
from attnscope.trajectory import RunFolder, open_run
from attnscope.trajectory.check import check_run
from attnscope.trajectory.staging import HIDDEN

from . import forks, preload
from .kills import phase_of
from .scenes import NAME, Scene, command

GROUPS = ("observables", "params", "data", "theory")


@dataclass(frozen=True)
class Reference:
    """A scene that nobody disturbed.

    Args:
        before: the folder as it was prepared.
        after: the folder as it ended.
        phases: numbers of the file operations of each phase.
        old: the run that is replaced, if there is one.
        new: the run that comes of it.
    """

    before: Path
    after: Path
    phases: dict[str, list[int]]
    old: xr.DataTree | None
    new: xr.DataTree

    @classmethod
    def of(cls, scene: Scene, base: Path) -> Reference:
        """Play a scene without an interruption, and count what it does."""
        place = base / scene.name.replace(" ", "_")
        before, after, trace = place / "before", place / "after", place / "trace"
        before.mkdir(parents=True)
        printed = place / "printed"
        made = forks.call(scene.prepare, before, printed=printed)
        assert made.code == 0, made.trouble or printed.read_text()
        shutil.copytree(before, after)
        counter = preload.Counter(place / "counter", after, trace=trace)

        def act() -> int:
            counter.begin()
            return scene.act(after)

        ended = forks.call(act, printed=printed)
        assert ended.code == 0, ended.trouble or printed.read_text()
        if scene.name.startswith("repair"):
            ended = forks.call(scene.again, after, printed=printed)
            assert ended.value == 0, ended.trouble or printed.read_text()
        phases: dict[str, list[int]] = defaultdict(list)
        for line in trace.read_text().splitlines():
            number, _, operation = line.partition(" ")
            phases[phase_of(operation)].append(int(number))
        old = open_run(before / NAME) if scene.replaces else None
        return cls(before, after, dict(phases), old, open_run(after / NAME))


def prepared(reference: Reference, where: Path) -> Path:
    """Return a folder as it was prepared."""
    return Path(shutil.copytree(reference.before, where / "root"))


def judge(scene: Scene, reference: Reference, root: Path) -> list[str]:
    """Return what is wrong after an interruption, and after going on from there."""
    found = _left(scene, reference, root)
    code = scene.again(root)
    if code != 0:
        found.append(f"the next command ends with {code}")
    else:
        found += _ended(reference, root)
    return found


def _left(scene: Scene, reference: Reference, root: Path) -> list[str]:
    """Look at what an interruption left; nothing is written."""
    found = []
    place = root / NAME
    others = [n for n in os.listdir(root) if n != NAME and not HIDDEN.fullmatch(n)]
    if others:
        found.append(f"left {others}")
    if not place.exists():
        # Without an exchange the old run may have stepped aside, and comes back.
        aside = any(name.endswith("-aside") for name in os.listdir(root))
        if scene.replaces and not aside:
            found.append("neither the old run nor the new one")
        try:
            open_run(place)
            found.append("opened what is not there")
        except AttnscopeError:
            pass
        return found
    if scene.name.startswith("repair"):
        return found
    try:
        tree = open_run(place)
    except AttnscopeError as error:
        return [*found, f"open_run: {error}"]
    old, new = reference.old, reference.new
    if old is not None and tree.attrs["spec"] == old.attrs["spec"]:
        found += [f"the old run: {each}" for each in differences(tree, old)]
    else:
        found += later(tree, new)
    for damage in check_run(place).damage:
        if damage.kind != "report" or "being written" not in damage.what:
            found.append(f"check: {damage.path.name} {damage.what}")
    if command("show", str(place)) != 0:
        found.append("attnscope show fails")
    return found


def _ended(reference: Reference, root: Path) -> list[str]:
    """Look at a run that went on to its end."""
    found = []
    if os.listdir(root) != [NAME]:
        found.append(f"the next command leaves {sorted(os.listdir(root))}")
    place, expected = root / NAME, reference.after / NAME
    health = check_run(place)
    found += [f"in the end: {each.path.name} {each.what}" for each in health.damage]
    found += [f"in the end: {each.name} is left" for each in health.left]
    locks = [name for name in (".writer", ".report-writer") if (place / name).exists()]
    found += [f"in the end: the lock {name} is left" for name in locks]
    found += differences(open_run(place), reference.new)
    if RunFolder(expected).findings_path.exists():
        ours, theirs = RunFolder(place).findings_path, RunFolder(expected).findings_path
        if not ours.exists() or ours.read_bytes() != theirs.read_bytes():
            found.append("other findings")
        if not RunFolder(place).report_path.exists():
            found.append("no report")
    return found


def differences(ours: xr.DataTree, theirs: xr.DataTree) -> list[str]:
    """Return where two trajectories differ in a bit."""
    found = []
    for group in GROUPS:
        if (group in ours.children) != (group in theirs.children):
            found.append(f"{group} is in one of two runs")
        elif group in ours.children and not ours[group].to_dataset().identical(
            theirs[group].to_dataset()
        ):
            found.append(f"{group} differs from that of the undisturbed run")
    stats = ("stats/steps", "stats/loss", "stats/outcome")
    found += [f"{name} differs" for name in stats if not np.array_equal(ours[name], theirs[name])]
    return found


def later(ours: xr.DataTree, whole: xr.DataTree) -> list[str]:
    """Return where a trajectory is not the beginning of another one."""
    found = []
    for group in GROUPS:
        if group not in ours.children:
            continue
        for name, array in ours[group].data_vars.items():
            if group == "theory" and ours.attrs["status"] != whole.attrs["status"]:
                continue
            one, other = array.to_numpy(), whole[group][name].to_numpy()
            if one.ndim > 1 and one.shape[1] < other.shape[1]:
                other = other[:, : one.shape[1]]  # A recording that is still going on.
            elif one.ndim == 1:
                other = other[: len(one)]
            if one.shape != other.shape:
                found.append(f"{group}/{name} has shape {one.shape}, not {other.shape}")
            elif one.dtype.kind == "f":
                known = ~np.isnan(one)
                if not np.array_equal(one[known], other[known]):
                    found.append(f"{group}/{name} holds other numbers")
            elif not np.array_equal(one, other):
                found.append(f"{group}/{name} holds other values")
    return found
