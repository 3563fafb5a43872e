"""What is interrupted: commands in a folder of their own, from its set-up to its report."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for toy_study and watched_toys

import torch
import xarray as xr

import attnscope
from attnscope.cli import main
from attnscope.trajectory import ZarrSink, pace, staging
from attnscope.watching import scope as scopes

torch.set_num_threads(1)

NAME = "run"
STUDY = str(Path(__file__).with_name("study.py"))
COMMAND = ("run", STUDY, "--workers", "1")
OTHER = ("--seeds", "2", "--start", "3", "1")
"""The spec of the run that is replaced."""
OFTEN = 60
"""Steps of training between two checkpoints."""
SITECUSTOMIZE = """
from attnscope.trajectory import ZarrSink, pace
pace.SHARE = 0
ZarrSink.__init__.__kwdefaults__["every"] = 0.01
"""


def often() -> None:
    """Have checkpoints kept often, at the same steps in every process; and recordings flushed."""
    scopes.FLUSH = 0.0
    pace.SHARE = 0
    real = ZarrSink.step

    def step(self: ZarrSink, *args: object) -> bool:
        self.steps = getattr(self, "steps", 0) + 1  # type: ignore[attr-defined]
        self.every, self.kept = 1.0, 0.0 if self.steps % OFTEN == 0 else 1e18
        return real(self, *args)  # type: ignore[arg-type]

    ZarrSink.step = step  # type: ignore[method-assign, assignment]


def warm_up(tree: xr.DataTree, out: Path) -> None:
    """Import here what every forked process would import for itself; no gradient is computed.

    Args:
        tree: a trajectory of the study.
        out: an empty folder.
    """
    from attnscope.catalogue import load
    from attnscope.cli.verbs.run import parse

    with contextlib.redirect_stdout(io.StringIO()):
        parse(load(STUDY), ["--seeds", "1"])
        command("show", tree.attrs["path"])
        command("check", tree.attrs["path"])
    attnscope.write_report(tree, out)


def command(*words: str) -> int:
    """Do what the command line does."""
    return main(words)


@dataclass(frozen=True)
class Scene:
    """Something that is done in a folder and may be interrupted.

    Args:
        name: of what is done.
        prepare: makes what is there before, in an empty folder.
        act: does it; is given the folder that holds the run's.
        again: brings it to its end after an interruption.
        replaces: whether a run of another spec is there before.
    """

    name: str
    prepare: Callable[[Path], None]
    act: Callable[[Path], int]
    again: Callable[[Path], int]
    replaces: bool = False


def run(root: Path, *flags: str) -> int:
    """Run the study."""
    often()
    return command(*COMMAND, "--out", str(root / NAME), *flags)


def nothing(root: Path) -> None:
    """Leave it empty."""


def other(root: Path) -> None:
    """Make the run that will be replaced, with its report."""
    assert run(root, *OTHER) == 0


def finished(root: Path) -> None:
    """Make the run."""
    assert run(root) == 0


def broken(root: Path) -> None:
    """Make the run, and damage a reading, its theory and its report."""
    finished(root)
    folder = root / NAME
    spoil(folder / "trajectory.zarr/observables/x/c/1/1/0")
    unsettled(root, folder)


def unfounded(root: Path) -> None:
    """Make the run, and damage what follows from its readings."""
    finished(root)
    unsettled(root, root / NAME)


def unsettled(root: Path, folder: Path) -> None:
    """Damage theory and report."""
    spoil(folder / "trajectory.zarr/theory/x/c/0/0/0")
    (folder / "report.html").unlink()


def spoil(file: Path) -> None:
    """Change a byte."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 4
    file.write_bytes(data)


def with_workers(root: Path) -> int:
    """Run the study in two processes of its own."""
    import os

    (root.parent / "sitecustomize.py").write_text(SITECUSTOMIZE)
    os.environ["PYTHONPATH"] = str(root.parent)
    return command("run", STUDY, "--workers", "2", "--out", str(root / NAME))


def overwrite(root: Path) -> int:
    """Replace the run of another spec."""
    return run(root, "--overwrite")


def overwrite_by_steps(root: Path) -> int:
    """Replace it as systems do that cannot exchange two names."""
    staging._exchange = lambda *_: False  # type: ignore[assignment]
    return overwrite(root)


def replaced(root: Path) -> int:
    """Go on with the new run if it is there, and replace the old one if not."""
    place = root / NAME
    staging.clear(root)
    started = place.exists() and attnscope.open_run(place)["observables/x"].sizes["run"] == 2
    return run(root, "--resume" if started else "--overwrite")


def repair(root: Path) -> int:
    """Have it repaired."""
    from attnscope.catalogue import load

    load(STUDY)  # A run's folder never has a stranger's study imported.
    return command("check", str(root / NAME), "--repair")


def repaired(root: Path) -> int:
    """Have it repaired, and what has to be run again run again."""
    repair(root)
    return run(root, "--resume")


def watch(root: Path) -> int:
    """Train a small model that is watched."""
    from watched_toys import Attention

    often()
    torch.manual_seed(0)
    model = torch.nn.Sequential(Attention(), torch.nn.Linear(8, 1))
    x, y = torch.randn(16, 5, 8), torch.randn(16, 5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    import warnings

    warnings.simplefilter("ignore")  # A folder that exists is left as it is.
    with attnscope.watch(model, root / NAME, ["weight_norm"], every=2) as scope:
        for _ in range(12):
            optimizer.zero_grad()
            loss = (model(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            scope.step(loss)
    return 0


def watched_again(root: Path) -> int:
    """Settle what there is, and record the same training into whatever place is free."""
    place = root / NAME
    if place.exists():
        code = command("check", str(place), "--repair")
        if code:
            return code
        shutil.move(place, root.parent / "half")
    return watch(root)


SCENES = (
    Scene("run", nothing, run, lambda root: run(root, "--resume")),
    Scene("two workers", nothing, with_workers, lambda root: run(root, "--resume")),
    Scene("overwrite", other, overwrite, replaced, replaces=True),
    Scene("overwrite in steps", other, overwrite_by_steps, replaced, replaces=True),
    Scene("repair of theory", unfounded, repair, repaired),
    Scene("repair of readings", broken, repair, repaired),
    Scene("watch", nothing, watch, watched_again),
)
