"""Saved weights into a model, tensor by tensor; nothing in them or beside them is executed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.checkpoints.saved import CONFIG, Saved

NAMED = 5
"""So many names are listed before the rest is counted."""


def build_from(saved: Saved) -> Callable[[], nn.Module]:
    """Return what makes the model of a configuration, by classes of transformers alone."""
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


def load(model: nn.Module, saved: Saved) -> str:
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
    if (missing or shapes) and not _load_renamed(model, saved):
        parts = [f"missing keys: {_some(missing)}"] if missing else []
        parts += [f"of another shape: {_some(shapes)}"] if shapes else []
        parts += [f"keys that the model does not have: {_some(other)}"] if other else []
        raise AttnscopeError(
            f"'{saved.name}' does not fit the model. {'; '.join(parts)}. Expected weights of "
            f"{type(model).__name__}."
        )
    return digest.hexdigest()


def _load_renamed(model: nn.Module, saved: Saved) -> bool:
    """Let transformers load weights whose names have changed since they were saved.

    Versions rename weights (``embed_out`` of Pythia is ``lm_head`` now), and only transformers
    knows how. Returns whether all weights of the model were found.
    """
    if saved.config is None or not hasattr(model, "from_pretrained"):
        return False
    from transformers.utils import logging

    kind: Any = type(model)
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        fresh, told = kind.from_pretrained(
            saved.config.parent,
            config=model.config,
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, KeyError):
        return False
    finally:
        if shown:
            logging.enable_progress_bar()
    if any(told.get(name) for name in ("missing_keys", "mismatched_keys", "error_msgs")):
        return False
    model.load_state_dict(fresh.state_dict())
    return True


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
