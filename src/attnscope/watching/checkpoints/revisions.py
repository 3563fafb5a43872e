"""The revisions of a Hugging Face repository as checkpoints, from the local cache alone.

Model families that publish their training (Pythia, OLMo, ...) keep every checkpoint as a branch
such as ``step1000``. The cache of ``huggingface_hub`` holds a repository so::

    models--ORG--NAME/
      refs/step1000          the commit that the branch points to
      snapshots/<commit>/    config.json, model.safetensors, ..., links to what was downloaded

Nothing is downloaded here.
"""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

from attnscope.errors import AttnscopeError
from attnscope.watching.checkpoints.saved import (
    CONFIG,
    Saved,
    by_step,
    pickles_in,
    refuse_pickle,
    weights_in,
)

STEP = re.compile(
    r"(?:^|[^a-z])(?:global[-_]?step|step|checkpoint|ckpt|iteration|iter)s?[-_]?(\d{1,15})(?!\d)",
    re.IGNORECASE,
)
"""``step1000``, ``checkpoint-1000``, ``stage1-step1000-tokens5B``. Another number, such as that of
``v1.0``, is no step."""
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def cached_repository(given: str | Path) -> Path | None:
    """Return the folder of a repository in the cache; ``None`` for anything else.

    Args:
        given: the folder ``models--ORG--NAME``, or ``ORG/NAME``.
    """
    path = Path(given)
    if path.is_dir():
        return path if (path / "snapshots").is_dir() else None
    if re.fullmatch(r"[\w.-]+/[\w.-]+", str(given)) is None:
        return None
    cache = _cache()
    folder = cache / f"models--{str(given).replace('/', '--')}"
    if not (folder / "snapshots").is_dir():
        raise AttnscopeError(
            f"'{given}' is no folder, and '{cache}' has no '{folder.name}': expected a folder of "
            "checkpoints, or a repository whose revisions were downloaded before "
            f"(`hf download {given} --revision step1000`)."
        )
    return folder


def find_revisions(folder: Path) -> list[Saved]:
    """Return the revisions of a cached repository that are named by a step, by step.

    Others, such as ``main``, and those whose weights are not in the cache are left out with a
    warning.

    Raises:
        AttnscopeError: none is named by a step, two of one step have other weights, or parts of
            some are missing.
    """
    refs = folder / "refs"
    names = sorted(
        path.relative_to(refs).as_posix() for path in refs.rglob("*") if path.is_file()
    ) if refs.is_dir() else []  # fmt: skip
    found: dict[tuple[int, str], Saved] = {}
    other, absent, pickles = [], [], []
    for name in names:
        step = step_of(name)
        if step is None:
            other.append(name)
            continue
        commit = _commit(refs / name)
        snapshot = folder / "snapshots" / commit
        called = f"revision {name} of {_repository(folder)}"
        try:
            files = weights_in(snapshot) if snapshot.is_dir() else []
        except AttnscopeError as error:
            raise AttnscopeError(f"{called}: {error}") from error
        if not files:
            pickles += pickles_in(snapshot) if snapshot.is_dir() else []
            absent.append(name)
            continue
        config = snapshot / CONFIG if (snapshot / CONFIG).is_file() else None
        # Two names of one commit are one checkpoint.
        found.setdefault((step, commit), Saved(step, tuple(files), config, called))
    if not found and pickles:
        refuse_pickle(pickles[0])
    if not found:
        raise AttnscopeError(_nothing(folder, other, absent))
    if other:
        _left_out("no step in their names", other)
    if absent:
        _left_out("no weights in the cache as safetensors", absent)
    return by_step(found.values())


def step_of(revision: str) -> int | None:
    """Return the step that a revision is named by, the last one of several.

    >>> [step_of(name) for name in ("step1000", "stage1-step500-tokens3B", "128", "main", "v1.0")]
    [1000, 500, 128, None, None]
    """
    if re.fullmatch(r"\d{1,15}", revision):
        return int(revision)
    numbers = STEP.findall(revision)
    return int(numbers[-1]) if numbers else None


def _commit(ref: Path) -> str:
    try:
        text = ref.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AttnscopeError(
            f"'{ref}' cannot be read ({error}): expected the name of a commit."
        ) from error
    if COMMIT.fullmatch(text) is None:
        raise AttnscopeError(f"'{ref}' says '{text[:60]}': expected the name of a commit.")
    return text


def _repository(folder: Path) -> str:
    return folder.name.removeprefix("models--").replace("--", "/")


def _left_out(why: str, names: list[str]) -> None:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    warnings.warn(f"revisions with {why} are left out: {shown}.", stacklevel=4)


def _nothing(folder: Path, other: list[str], absent: list[str]) -> str:
    said = [f"{len(other)} without a step in their names ({', '.join(other[:3])})"] if other else []
    said += [f"{len(absent)} without weights ({', '.join(absent[:3])})"] if absent else []
    have = "; ".join(said) or "none at all"
    return (
        f"'{folder}' has no revision that is a checkpoint: {have}. Expected refs such as step1000 "
        "with model.safetensors in their snapshots."
    )


def _cache() -> Path:
    """Return where ``huggingface_hub`` keeps repositories, by its own variables."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(name):
            return Path(os.environ[name]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home).expanduser() / "huggingface" / "hub"
