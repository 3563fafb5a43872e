"""A trajectory after the fact: from weights that a training has saved.

Only safetensors are read, in which there is nothing to execute. One checkpoint is in memory at a
time.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching import watch

CONFIG = "config.json"
SHARDS = "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
NAMED = 5
"""So many names are listed before the rest is counted."""


@dataclass(frozen=True)
class Saved:
    """Weights that a training has saved.

    Args:
        step: number of steps taken before.
        files: where they lie, one or several.
        config: the configuration that lies beside them, if there is one.
    """

    step: int
    files: tuple[Path, ...]
    config: Path | None = None

    @property
    def name(self) -> str:
        """What it is called in sentences."""
        path = self.files[0]
        return str(path.parent if self.config is not None or len(self.files) > 1 else path)


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
    found: dict[int, Saved] = {}
    pickles: list[Path] = []
    for path in sorted(root.iterdir()):
        numbers = re.findall(r"\d+", path.name if path.is_dir() else path.stem)
        if not numbers:
            continue
        if len(numbers[-1]) > 15:
            raise AttnscopeError(f"'{path}' is named by a step that is no number of steps.")
        files = _weights(path) if path.is_dir() else [path]
        if not files or files[0].suffix != ".safetensors":
            inside = sorted(path.iterdir()) if path.is_dir() else [path]
            pickles += [file for file in inside if file.suffix in PICKLES and _holds_weights(file)]
            continue
        config = path / CONFIG if path.is_dir() and (path / CONFIG).is_file() else None
        saved = Saved(int(numbers[-1]), tuple(files), config)
        if saved.step in found:
            raise AttnscopeError(
                f"'{found[saved.step].name}' and '{saved.name}' are both of step {saved.step}: "
                "expected one checkpoint of a step."
            )
        found[saved.step] = saved
    if pickles:
        raise AttnscopeError(
            f"'{pickles[0]}' is a pickle, which can execute anything when it is loaded, and is "
            "never loaded here. Expected safetensors. To convert your own: "
            "`safetensors.torch.save_model(model, 'STEP.safetensors')` after loading it into the "
            "model, or `model.save_pretrained(folder)` for a Hugging Face model."
        )
    if not found:
        raise AttnscopeError(
            f"'{root}' holds no checkpoints: expected folders such as checkpoint-500 with "
            "model.safetensors in them, or files such as 500.safetensors."
        )
    return [found[step] for step in sorted(found)]


def from_checkpoints(
    folder: str | Path,
    out: str | Path,
    record: Sequence[Any] | None = None,
    *,
    build: Callable[[], nn.Module] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> Path:
    """Make the trajectory of a training from its checkpoints.

    Every checkpoint is a reading. Losses, gradients and lengths of steps are not known. Steps whose
    weights are identical are found by their hash, and a warning says which they are.

    Args:
        folder: where the checkpoints lie, see :func:`find_checkpoints`.
        out: folder for the trajectory.
        record: what is recorded, as for :func:`attnscope.watch`.
        build: makes the model; from ``config.json`` beside the weights unless given, by classes of
            transformers alone.
        progress: hears how many checkpoints of how many were read.
        **options: ``probe`` and the others of :func:`attnscope.watch`.

    Returns:
        The folder of the trajectory.

    Raises:
        AttnscopeError: there is nothing to read, or a checkpoint does not fit the model.
    """
    checkpoints = find_checkpoints(folder)
    model = (build or _build_from(checkpoints[0]))()
    if not isinstance(model, nn.Module):
        raise AttnscopeError(
            f"what was to build the model returned a {type(model).__name__}: expected a "
            "torch.nn.Module."
        )
    model.eval()
    hashes: dict[str, list[int]] = {}
    hashes.setdefault(_load(model, checkpoints[0]), []).append(checkpoints[0].step)
    scope = watch(model, out, record, every=1, begin=False, **options)
    scope.count = checkpoints[0].step
    scope.spec["checkpoints"] = str(folder)
    with scope:
        progress(1, len(checkpoints))
        for number, saved in enumerate(checkpoints[1:], 2):
            hashes.setdefault(_load(model, saved), []).append(saved.step)
            scope.at(saved.step)
            if not scope.recording:
                raise AttnscopeError(f"{scope.status}: expected a place that can be written.")
            progress(number, len(checkpoints))
        same = [steps for steps in hashes.values() if len(steps) > 1]
        scope.spec["identical"] = same
    if same:
        groups = "; ".join(", ".join(map(str, steps)) for steps in same)
        warnings.warn(
            f"some steps have identical weights: {groups}. They are {sum(map(len, same))} of "
            f"{len(checkpoints)} checkpoints.",
            stacklevel=2,
        )
    return scope.folder.path


def _weights(folder: Path) -> list[Path]:
    """Return the files with the weights of a model, none if there are none."""
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
        lost = [name for name in names if not (folder / name).is_file()]
        if lost:
            raise AttnscopeError(f"'{index}' names '{lost[0]}', which is not there.")
        return [folder / name for name in names]
    whole = folder / "model.safetensors"
    return [whole] if whole.is_file() else sorted(folder.glob("*.safetensors"))[:1]


def _holds_weights(path: Path) -> bool:
    # A Trainer also pickles its optimizer and its arguments, which nobody asks for here.
    return not path.stem.startswith(
        ("optimizer", "scheduler", "scaler", "training_args", "rng_state")
    )


def _build_from(saved: Saved) -> Callable[[], nn.Module]:
    if saved.config is None:
        raise AttnscopeError(
            f"there is no {CONFIG} beside '{saved.files[0]}', so nobody knows the model: expected "
            "a function that builds it, --model module:function."
        )
    try:
        import transformers
    except ImportError:
        raise AttnscopeError(
            f"'{saved.config}' is the configuration of a Hugging Face model, and transformers is "
            "not installed here: expected `pip install transformers`, or a function that builds "
            "the model, --model module:function."
        ) from None
    path = saved.config

    def build() -> nn.Module:
        try:
            config = transformers.AutoConfig.from_pretrained(path.parent, trust_remote_code=False)
        except (ValueError, OSError, KeyError) as error:
            raise AttnscopeError(
                f"'{path}' is no configuration that transformers knows ({error}): expected one, "
                "or a function that builds the model, --model module:function."
            ) from error
        names = config.architectures or []
        # The class that was trained has the head on top; its name is all that is taken from there.
        kind = getattr(transformers, names[0], None) if names else None
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind(config)
        made: nn.Module = transformers.AutoModel.from_config(config, trust_remote_code=False)
        return made

    return build


def _load(model: nn.Module, saved: Saved) -> str:
    """Copy weights into a model, tensor by tensor; return the hash of all of them."""
    places = model.state_dict(keep_vars=True)
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    digest = hashlib.sha256()
    loaded: set[int] = set()
    other: list[str] = []
    shapes: list[str] = []
    for name, tensor in _tensors(saved):
        _hash(digest, name, tensor)
        place = places.get(name, places.get(name.removeprefix(prefix)))
        if place is None:
            other.append(name)
            continue
        loaded.add(place.data_ptr())
        if place.shape != tensor.shape:
            shapes.append(f"{name} {tuple(tensor.shape)} for {tuple(place.shape)}")
            continue
        with torch.no_grad():
            place.copy_(tensor)
    # Weights that are tied, such as those of words on both ends, are saved once.
    missing = [
        name
        for name, place in places.items()
        if isinstance(place, Tensor) and place.numel() and place.data_ptr() not in loaded
    ]
    if missing or shapes:
        parts = [f"missing keys: {_some(missing)}"] if missing else []
        parts += [f"of another shape: {_some(shapes)}"] if shapes else []
        parts += [f"keys that the model does not have: {_some(other)}"] if other else []
        raise AttnscopeError(
            f"'{saved.name}' does not fit the model. {'; '.join(parts)}. Expected weights of "
            f"{type(model).__name__}."
        )
    return digest.hexdigest()


def _tensors(saved: Saved) -> Iterator[tuple[str, Tensor]]:
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(safe_open(path, framework="pt")) for path in saved.files]
            names = {name: file for file in files for name in file.keys()}  # noqa: SIM118
            for name in sorted(names):
                yield name, names[name].get_tensor(name)
    except (SafetensorError, OSError) as error:
        raise AttnscopeError(
            f"'{saved.name}' cannot be read ({error}): expected safetensors."
        ) from error


def _hash(digest: Any, name: str, tensor: Tensor) -> None:
    digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
    digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy())


def _some(names: Sequence[str]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
