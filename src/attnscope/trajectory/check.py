"""Whether a run is whole: every file of it, and what follows from each that is not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attnscope.errors import AttnscopeError
from attnscope.trajectory.checkpoint import load_checkpoint
from attnscope.trajectory.documents import DamagedFile
from attnscope.trajectory.folder import CHECKED, GROWING, RunFolder
from attnscope.trajectory.inventory import changed, half_written
from attnscope.trajectory.loading import look
from attnscope.trajectory.tree import states_of

Kind = Literal["manifest", "readings", "state", "data", "theory", "checkpoint", "report"]


@dataclass(frozen=True)
class Damage:
    """A file that is not what was written.

    Args:
        path: the file.
        what: what is wrong with it.
        kind: what it is a part of.
        run: the run that it belongs to; ``None`` if to all of them.
    """

    path: Path
    what: str
    kind: Kind
    run: int | None = None


@dataclass(frozen=True)
class Health:
    """What a look at every file of a run came to.

    Args:
        path: the run's folder.
        manifest: what it says about itself; empty if that cannot be read.
        damage: what is wrong.
        checked: whether the version that wrote it kept checksums.
        left: half-written files of a killed process, which do no harm.
    """

    path: Path
    manifest: dict[str, Any]
    damage: tuple[Damage, ...]
    checked: bool
    left: tuple[Path, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damage

    def runs(self) -> list[int]:
        """Return the runs of which readings, state or checkpoint are damaged."""
        return sorted({each.run for each in self.damage if each.run is not None})

    def good(self) -> str:
        """Say what can still be relied on."""
        if not self.manifest:
            return "nothing: without run.json nobody knows what the arrays are"
        total = len(self.manifest["runs"])
        kinds = {each.kind for each in self.damage}
        readings = {each.run for each in self.damage if each.kind == "readings"}
        if None in readings:
            lost = "the readings of all runs are incomplete"
        elif readings:
            lost = f"the readings of {total - len(readings)} of {total} runs"
        else:
            lost = "all readings"
        parts = [lost, *(kind for kind in ("data", "theory") if kind not in kinds)]
        return ", ".join(parts)


def check_run(path: str | Path) -> Health:
    """Look at every file of a run; nothing is written.

    Raises:
        AttnscopeError: the folder is not a run at all.
    """
    folder = RunFolder(Path(path))
    try:
        manifest = folder.manifest()
    except DamagedFile as error:
        return Health(folder.path, {}, (Damage(error.path, error.what, "manifest"),), True)
    states, damaged = states_of(folder, manifest)
    numbers = {folder.state_path(run): run for run in range(len(states))}
    damage = [Damage(each.path, each.what, "state", numbers.get(each.path)) for each in damaged]
    found = look(folder, manifest, states).damage
    damage += [_of_store(folder, each, manifest) for each in found]
    for run in range(len(states)):
        try:
            load_checkpoint(folder.checkpoint_path(run))
        except DamagedFile as error:
            damage.append(Damage(error.path, error.what, "checkpoint", run))
        except AttnscopeError as error:
            damage.append(Damage(folder.checkpoint_path(run), str(error), "checkpoint", run))
    damage += [Damage(each.path, each.what, "report") for each in changed(folder)]
    checked = manifest["format"] >= CHECKED
    return Health(folder.path, manifest, tuple(damage), checked, tuple(half_written(folder)))


def _of_store(folder: RunFolder, error: DamagedFile, manifest: dict[str, Any]) -> Damage:
    """Say which part of a run a file of its store belongs to."""
    try:
        parts = error.path.relative_to(folder.store).parts
    except ValueError:
        parts = ()
    group = parts[0] if len(parts) > 1 else ""
    kind: Kind = "theory" if group == "theory" else "data" if group == "data" else "readings"
    run = None
    # Of a chunk of readings the first number is the run: observables/loss/c/RUN/CHUNK.
    if group in GROWING and len(parts) > 4 and parts[2] == "c" and parts[3].isdigit():
        run = int(parts[3]) if int(parts[3]) < len(manifest["runs"]) else None
    return Damage(error.path, error.what, kind, run)
