"""What a process of the player does: a run, to an answer for the page."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from attnscope.lab.worlds.scene import Scene
    from attnscope.workers import Job


def warm_up() -> None:
    """Load all worlds and do a tiny run, which loads whatever else is loaded late."""
    from attnscope.catalogue import load
    from attnscope.lab.worlds import WORLDS, Setting, world
    from attnscope.lab.worlds.scene import scene

    for each in WORLDS:
        load(each.study)
    setting: Setting = {"m": 2, "dictionary": 20, "dim": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        message(scene(world("lu2021").spec(setting)), [])


def answer(wanted: dict[str, Any], job: Job) -> str:
    """Do one run and return its scene as JSON.

    Args:
        wanted: ``world``, ``setting``, and ``have``, the figures that need numbers only.
        job: says when the run is not wanted any more.

    Raises:
        AttnscopeError: the run broke down, was stopped, or needs too much memory.
    """
    from attnscope.lab.worlds import world
    from attnscope.lab.worlds.scene import scene

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = world(wanted["world"]).spec(wanted["setting"])
            return message(scene(study, job.stopped), wanted["have"], job.stopped)
    except Exception as error:
        if _is_out_of_memory(error):
            raise AttnscopeError(
                "This setting needs more memory than a run may have: expected a smaller one."
            ) from error
        raise


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "allocate" in str(error)


_documents: dict[str, dict[str, Any]] = {}
"""Figures as Bokeh documents by their signature: making one takes as long as a run."""
MOST_DOCUMENTS = 200


def message(scene: Scene, have: list[str], stopped: Callable[[], bool] = lambda: False) -> str:
    """Return a scene as JSON; figures that the page has already come as numbers only.

    A document may be that of another setting. The numbers, which come with it, take the place of
    those in it.

    Raises:
        Stopped: ``stopped`` said so.
    """
    from bokeh.core.json_encoder import serialize_json

    from attnscope.experiment import Stopped
    from attnscope.lab import drawing

    figures = []
    for figure in scene.figures:
        if stopped():
            raise Stopped("stopped.")
        name = drawing.signature(figure)
        entry: dict[str, Any] = {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption,
            "signature": name,
            "data": drawing.columns(figure),
        }
        if name not in have:
            if name not in _documents:
                if len(_documents) == MOST_DOCUMENTS:
                    _documents.clear()
                _documents[name] = drawing.item(figure)
            entry["item"] = _documents[name]
        figures.append(entry)
    times, weights = (drawing.packed(x) for x in (scene.attention.times, scene.attention.weights))
    values = {
        **vars(scene),
        "figures": figures,
        "attention": {**vars(scene.attention), "times": times, "weights": weights},
        "findings": [_finite(finding.to_json()) for finding in scene.findings],
    }
    return serialize_json(values)


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity either."""
    return {k: None if v in (math.inf, -math.inf) else v for k, v in values.items()}
