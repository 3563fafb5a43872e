"""Where the checkpoints of a training lie, and of which steps they are."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from attnscope.errors import AttnscopeError

CONFIG = "config.json"
SHARDS = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


@dataclass(frozen=True)
class Saved:
    """Weights that a training has saved.

    Args:
        step: number of steps taken before.
        files: where they lie, one or several.
        config: the configuration that lies beside them, if there is one.
        called: its name, if that is not where it lies.
    """

    step: int
    files: tuple[Path, ...]
    config: Path | None = None
    called: str = ""

    @property
    def name(self) -> str:
        """What it is called in sentences."""
        path = self.files[0]
        folder = self.config is not None or len(self.files) > 1
        return self.called or str(path.parent if folder else path)


def find_checkpoints(folder: str | Path) -> list[Saved]:
    """Return the checkpoints in a folder, by step.

    They are folders such as ``checkpoint-500`` with ``model.safetensors`` in them, or files such as
    ``500.safetensors``. The last number of a name is the step.

    Raises:
        AttnscopeError: there is none, they are pickles, or two have the same step.
    """
    root = Path(folder)
    if not root.is_dir():
        raise AttnscopeError(f"'{root}' is no folder: expected one with checkpoints in it.")
    found: list[Saved] = []
    pickles: list[Path] = []
    for path in sorted(root.iterdir()):
        numbers = re.findall(r"\d+", path.name if path.is_dir() else path.stem)
        if not numbers:
            continue
        if len(numbers[-1]) > 15:
            raise AttnscopeError(f"'{path}' is named by a step that is no number of steps.")
        files = weights_in(path) if path.is_dir() else [path]
        if not files or files[0].suffix != ".safetensors":
            pickles += pickles_in(path)
            continue
        config = path / CONFIG if path.is_dir() and (path / CONFIG).is_file() else None
        found.append(Saved(int(numbers[-1]), tuple(files), config))
    if pickles:
        refuse_pickle(pickles[0])
    if not found:
        raise AttnscopeError(
            f"'{root}' holds no checkpoints: expected folders such as checkpoint-500 with "
            "model.safetensors in them, or files such as 500.safetensors."
        )
    return by_step(found)


def by_step(found: Iterable[Saved]) -> list[Saved]:
    """Return checkpoints by step.

    Raises:
        AttnscopeError: two have the same.
    """
    steps: dict[int, Saved] = {}
    for saved in found:
        if saved.step in steps:
            raise AttnscopeError(
                f"'{steps[saved.step].name}' and '{saved.name}' are both of step {saved.step}: "
                "expected one checkpoint of a step."
            )
        steps[saved.step] = saved
    return [steps[step] for step in sorted(steps)]


def weights_in(folder: Path) -> list[Path]:
    """Return the files with the weights of a model, none if there are none.

    Raises:
        AttnscopeError: some of its parts are missing.
    """
    index = folder / SHARDS
    if index.is_file():
        try:
            named = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            names = sorted({Path(name).name for name in named})
        except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError) as e:
            raise AttnscopeError(
                f"'{index}' cannot be read ({e}): expected JSON with a weight_map from names of "
                "weights to files beside it."
            ) from e
        # Not by Path.is_file, which raises where a name is too long to be one.
        lost = [name for name in names if not os.path.isfile(folder / name)]
        if lost:
            raise AttnscopeError(f"'{index}' names '{lost[0]}', which is not there.")
        return [folder / name for name in names]
    whole = folder / "model.safetensors"
    if whole.is_file():
        return [whole]
    others = sorted(path for path in folder.glob("*.safetensors") if path.is_file())
    if others and re.search(r"-\d+-of-\d+$", others[0].stem):
        raise AttnscopeError(
            f"'{others[0]}' is a part of a model, and '{index.name}', which names the others, is "
            "not beside it: expected all parts and the index."
        )
    return others[:1]


def pickles_in(path: Path) -> list[Path]:
    """Return the pickles with weights in a folder, or the file itself if it is one."""
    inside = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in inside if file.suffix in PICKLES and _holds_weights(file)]


def refuse_pickle(path: Path) -> NoReturn:
    """Say that a pickle is not loaded, and what to do.

    Raises:
        AttnscopeError: always.
    """
    raise AttnscopeError(
        f"'{path}' is a pickle, which can execute anything when it is loaded, and is "
        "never loaded here. Expected safetensors. To convert your own: "
        "`safetensors.torch.save_model(model, 'STEP.safetensors')` after loading it into the "
        "model, or `model.save_pretrained(folder)` for a Hugging Face model."
    )


def _holds_weights(path: Path) -> bool:
    # A Trainer also pickles its optimizer and its arguments, which nobody asks for here.
    return not path.stem.startswith(
        ("optimizer", "scheduler", "scaler", "training_args", "rng_state")
    )
