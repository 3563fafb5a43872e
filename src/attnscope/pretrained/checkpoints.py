"""Checkpoints of one training run as a series of models."""

from __future__ import annotations

from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.pretrained.loading import Source, source
from attnscope.watching.checkpoints import find_checkpoints


def is_series(folder: str | Path) -> bool:
    """Return whether a folder holds folders of checkpoints, and no weights of its own."""
    path = Path(folder).expanduser()
    if not path.is_dir() or any(path.glob("*.safetensors")) or any(path.glob("*.gguf")):
        return False
    return any(
        each.is_dir() and (each / "config.json").is_file() and any(c.isdigit() for c in each.name)
        for each in path.iterdir()
    )


def series(folder: str | Path) -> list[tuple[int, Source]]:
    """Return the checkpoints of a run, ``(step, where)``, by step.

    Checkpoints are folders such as ``checkpoint-500``, as ``save_pretrained`` and the Trainer write
    them. The tokenizer lies beside them or in the first of them.

    Raises:
        AttnscopeError: there are none, they are pickles, or there is no tokenizer.
    """
    root = Path(folder).expanduser()
    found = find_checkpoints(root)
    places = [root, *(saved.files[0].parent for saved in found)]
    tokenizer = next((each for each in places if (each / "tokenizer.json").is_file()), None)
    if tokenizer is None:
        raise AttnscopeError(
            f"'{root}' holds checkpoints and no tokenizer: expected tokenizer.json beside them or "
            "in one of them; `tokenizer.save_pretrained(folder)` writes it."
        )
    return [(saved.step, source(saved.files[0].parent, tokenizer)) for saved in found]
