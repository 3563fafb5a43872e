"""What a process of the player does: runs, one after the other, each to an answer for the page."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from attnscope.lab.worlds.scene import Scene


def serve_jobs(pipe: Any, cancelled: Any, memory: int) -> None:
    """Do runs until the pipe closes.

    Args:
        pipe: jobs come in as ``(number, job)``, answers go out as dictionaries.
        cancelled: number of the job that is not wanted any more, shared with the parent.
        memory: bytes that a run may need.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    import torch

    torch.set_num_threads(1)
    warm()
    limit_memory(memory)
    with contextlib.suppress(BrokenPipeError):
        pipe.send({"kind": "ready"})
        while True:
            try:
                number, job = pipe.recv()
            except EOFError:
                return
            pipe.send(answer(job, partial(_is, cancelled, number)))


def _is(shared: Any, number: int) -> bool:
    return bool(shared.value == number)


def warm() -> None:
    """Load all worlds and do a tiny run, which loads whatever else is loaded late."""
    from attnscope.lab.worlds import WORLDS

    for each in WORLDS:
        assert each.study
    answer(
        {"world": "lu2021", "setting": {"m": 2, "dictionary": 20, "dim": 4}, "have": []},
        lambda: False,
    )


def limit_memory(more: int) -> None:
    """Let this process have so many bytes more than it has now, where the system can do that."""
    if not sys.platform.startswith("linux"):
        return
    import resource

    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def answer(job: dict[str, Any], stopped: Callable[[], bool]) -> dict[str, Any]:
    """Do one run; whatever goes wrong is said in a sentence."""
    from attnscope.lab.worlds import world
    from attnscope.lab.worlds.scene import scene
    from attnscope.lab.worlds.solving import Stopped

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = world(job["world"]).spec(job["setting"])
            return {"kind": "scene", "text": message(scene(study, stopped), job["have"])}
    except Stopped:
        return {"kind": "stopped"}
    except AttnscopeError as error:
        return {"kind": "sorry", "sentence": str(error)}
    except Exception as error:
        if _is_out_of_memory(error):
            sentence = "This setting needs more memory than a run may have: expected a smaller one."
        else:
            traceback.print_exc()
            sentence = (
                "Something went wrong that should not (the terminal says what): expected the run "
                "to end. Another setting may work."
            )
        return {"kind": "sorry", "sentence": sentence}


def _is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "allocate" in str(error)


def message(scene: Scene, have: list[str]) -> str:
    """Return a scene as JSON; figures that the page has already come as numbers only."""
    from attnscope.lab import drawing

    figures = []
    for figure in scene.figures:
        name = drawing.signature(figure)
        entry: dict[str, Any] = {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption,
            "signature": name,
            "data": drawing.columns(figure),
        }
        if name not in have:
            entry["item"] = drawing.item(figure)
        figures.append(entry)
    attention = scene.attention
    found = [_finite(finding.to_json()) for finding in scene.findings]
    values = {
        "figures": figures,
        "attention": {
            "title": attention.title,
            "caption": attention.caption,
            "times": drawing.packed(attention.times),
            "unit": attention.unit,
            "keys": attention.keys,
            "queries": attention.queries,
            "weights": drawing.packed(attention.weights),
            "groups": attention.groups,
            "right": attention.right,
        },
        "findings": found,
        "outcome": scene.outcome,
        "python": scene.python,
        "command": scene.command,
        "seconds": scene.seconds,
        "processor_seconds": scene.processor_seconds,
        "drawing_seconds": scene.drawing_seconds,
    }
    return _json(values)


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity either."""
    return {k: None if v in (math.inf, -math.inf) else v for k, v in values.items()}


def _json(values: dict[str, Any]) -> str:
    from bokeh.core.json_encoder import serialize_json

    figures = values.pop("figures")
    parts = []
    for figure in figures:
        document = figure.pop("item", None)
        text = json.dumps(figure, ensure_ascii=False)
        if document is not None:
            text = f'{text[:-1]}, "item": {serialize_json(document)}}}'
        parts.append(text)
    rest = json.dumps(values, ensure_ascii=False)
    return f'{rest[:-1]}, "figures": [{", ".join(parts)}]}}'
