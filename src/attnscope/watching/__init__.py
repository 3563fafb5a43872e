"""The recorder for anybody's model: what it attends to, from the first step to the last.

::

    with attnscope.watch(model, "runs/mine", probe=batch, optimizer=optimizer) as scope:
        for batch in loader:
            ...
            scope.step(loss)

Training is the same, to the last bit, as without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.needs import check_torch
from attnscope.watching.facts import block_facts, optimizer_facts
from attnscope.watching.introduction import describe
from attnscope.watching.matrices import MATRICES, find_projections
from attnscope.watching.moment import AttentionPoint, Evaluation, Moment, Reading
from attnscope.watching.place import new_folder
from attnscope.watching.points import Found, search
from attnscope.watching.probe import Batch, Probe
from attnscope.watching.readings import catalogue
from attnscope.watching.readings.attention import mass_on
from attnscope.watching.readings.embeddings import WordNumbers, read_words
from attnscope.watching.readings.observed import THEORIES, as_observables
from attnscope.watching.readings.offer import WatchedModel
from attnscope.watching.readings.topics import Topics, read_topics
from attnscope.watching.readings.weights import blocks, unrecognised
from attnscope.watching.recording.processes import (
    SHARDED,
    Ranks,
    place_for,
    rank_and_count,
    sharded,
)
from attnscope.watching.recording.silent import SilentScope
from attnscope.watching.scope import Scope
from attnscope.watching.selection import ReadingPlan, Wanted, select
from attnscope.watching.tokens import IDS_KEPT, Tokens, read_tokens
from attnscope.watching.track import Every

check_torch(torch.__version__)

__all__ = [
    "THEORIES",
    "Every",
    "Moment",
    "Reading",
    "Scope",
    "as_observables",
    "mass_on",
    "watch",
]


def watch(
    model: nn.Module,
    out: str | Path,
    record: Sequence[Wanted | Every] | None = None,
    *,
    every: int = 100,
    probe: Batch | None = None,
    attention: str | Sequence[str] | Callable[[nn.Module], Any] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    words: WordNumbers | None = None,
    topics: Topics | None = None,
    targets: Tensor | None = None,
    tokens: Tokens | None = None,
    tokenizer: Any = None,
    ranks: Ranks = "first",
    begin: bool = True,
) -> Scope:
    """Record a model while it is trained.

    Args:
        model: any PyTorch module, a Hugging Face model, a compiled or data-parallel one.
        out: folder for the trajectory. One that exists is left alone, and another name is found.
        record: names of readings, functions of the model, :class:`Reading`, or :class:`Every` with
            some of these at steps of their own; what the model has unless given. The loss is always
            recorded, at every step.
        every: steps from one reading to the next; step 0 is always read.
        probe: a fixed batch that is evaluated for each reading: a tensor, a tuple of arguments, a
            dictionary of named arguments, or a function of the model. Without it attention is that
            of the training batch, and readings that need one are left out.
        attention: path or paths of the modules that compute attention, or a function of the model
            that returns weights, if the model has attention of its own making.
        optimizer: gradients are taken as it sees them, unscaled and clipped. Without it they are
            those that parameters have when ``scope.step`` is called.
        words: words to follow, as numbers or as ``{name: number}``.
        topics: topics of words: by word number, or a file of them.
        targets: right answers for the probe batch, ``(row,)`` or ``(row, position)``; -100 is none.
        tokens: words of the probe batch for people to read: a list of strings for every row, or one
            for all rows.
        tokenizer: names the word ids of the probe batch in place of ``tokens``: a tokenizer of
            Hugging Face, of ``tokenizers`` or of tiktoken, or a function of a word id.
        ranks: which of several processes record: the ``"first"``, or ``"all"``, each into a folder
            of its own such as ``mine-rank1``.
        begin: whether the reading at step 0 is taken now, or when the recording is entered.

    Returns:
        The recording: a ``with`` block ends it, or ``scope.close()``.

    Raises:
        AttnscopeError: something that was given cannot be meant, in a sentence.
    """
    place = place_for(out, ranks)
    if place is None:
        return SilentScope(model, out)
    if probe is not None and sharded(model):
        warnings.warn(SHARDED.format(count=rank_and_count()[1]), stacklevel=2)
        probe = None
    asked = None if probe is None else Probe(model, probe)
    found, first = _find(model, attention, asked)
    points = found.points
    watched = WatchedModel(
        model,
        points,
        asked,
        first,
        {} if words is None else read_words(words, model),
        None if topics is None else read_topics(topics),
        targets,
        optimizer,
    )
    plan = select(record, every, catalogue(watched))
    spec = _spec(watched, every, plan)
    spec["tokens"] = _tokens(tokens, tokenizer, first)
    scope = Scope(
        model,
        new_folder(place),
        plan,
        points=points,
        evaluate=None if asked is None else asked.evaluate,
        optimizer=optimizer,
        spec=spec,
        labels=_labels(spec),
        introduction=partial(_introduce, watched, plan, optimizer is not None, found.notes),
    )
    return scope.begin() if begin else scope


def _find(model: nn.Module, attention: Any, probe: Probe | None) -> tuple[Found, Evaluation | None]:
    if probe is None:
        return search(model, attention), None
    with probe.beginning() as run:
        found = search(model, attention, run, probe.rows)
    probe.watch(found.points)
    return found, probe.evaluate()


def _spec(watched: WatchedModel, every: int, plan: ReadingPlan) -> dict[str, Any]:
    """Return what a reader of the trajectory has to know, as JSON values."""
    ids = None if watched.first is None else watched.first.ids
    return {
        "model": type(watched.model).__name__,
        "parameters": sum(p.numel() for p in watched.model.parameters()),
        "every": every,
        "record": {
            dim: {"every": steps, "readings": [reading.name for reading in readings]}
            for dim, steps, readings in plan
        },
        "layers": [point.name for point in watched.points],
        "kinds": [point.kind for point in watched.points],
        "heads": [point.heads for point in watched.points],
        "matrices": list(MATRICES),
        "weight_layers": [p.name for p in find_projections(watched.model, watched.points)],
        "blocks": list(blocks(watched.model)),
        "words": dict(watched.words),
        "probe": watched.probe is not None,
        "optimizer": optimizer_facts(watched.optimizer, watched.model),
        "architecture": block_facts(watched.model, watched.points),
        "ids": ids.tolist() if ids is not None and ids.numel() <= IDS_KEPT else [],
    }


def _tokens(tokens: Tokens | None, tokenizer: Any, first: Evaluation | None) -> list[list[str]]:
    if first is None:
        return read_tokens(tokens, tokenizer, None)
    rows = max((len(weights) for weights in first.attention if weights.ndim == 4), default=1)
    return read_tokens(tokens, tokenizer, first.ids, rows)


def _labels(spec: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names of what readings have an axis for, from what the manifest says."""
    return {
        # Without points the layers are those that hold matrices.
        "layer": spec["layers"] or spec["weight_layers"],
        "weight_layer": spec["weight_layers"],
        "matrix": spec["matrices"],
        "block": spec["blocks"],
        "word": list(spec["words"]),
    }


def _introduce(
    watched: WatchedModel,
    plan: ReadingPlan,
    optimizer: bool,
    said: Sequence[str],
    cost: str,
) -> str:
    wanted = "; ".join(
        f"every {f'{steps} steps' if steps > 1 else 'step'} "
        + ", ".join(reading.name for reading in readings)
        for _, steps, readings in plan
    )
    needs = frozenset().union(*(reading.needs for _, _, part in plan for reading in part))
    notes = [*said, unrecognised(watched)]
    if "gradients" in needs and not optimizer:
        notes.append(
            "gradients are those that parameters have when scope.step is called; give "
            "optimizer=... if they are cleared before"
        )
    return describe(watched.points, [wanted], cost, notes)
