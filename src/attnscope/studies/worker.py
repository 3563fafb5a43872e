"""One run of a study, in this process or as a process of its own.

As a program it reads run numbers from standard input, one a line, and says what happens on standard
output as JSON, one object a line; what a study prints goes to standard error. When its standard
input closes it leaves at once: whoever started it is gone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.studies.base import Problem, Study
from attnscope.trajectory import RunFolder, ZarrSink, load_checkpoint, open_run


def execute(
    folder: RunFolder,
    study: Study,
    run: int,
    *,
    progress: Callable[[float], None] | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Do one run, or go on with it from its checkpoint; return how it ended.

    A run that is complete already is left alone.
    """
    state = folder.state(run)
    if state.get("outcome") in ("finished", "stopped"):
        return state
    case, seed = study.runs()[run]
    problem = _problem(folder, study, run)
    sink = ZarrSink(folder, run, progress=progress, interrupted=interrupted)
    solution = study.make_engine(case, seed).run(
        problem.model,
        problem.loss,
        time=study.time,
        record=problem.records,
        stop=problem.stop,
        sink=sink,
        resume=load_checkpoint(folder.checkpoint_path(run)),
    )
    return sink.finish(solution)


def _problem(folder: RunFolder, study: Study, run: int) -> Problem:
    case, seed = study.runs()[run]
    if run in study.rounds()[0]:
        return study.build(case, seed)
    return study.build_after(case, seed, open_run(folder.path))


def main(argv: list[str]) -> None:
    """Serve run numbers from standard input until it closes."""
    import torch

    from attnscope.studies import load

    torch.set_num_threads(1)
    speech, sys.stdout = sys.stdout, sys.stderr

    def say(**message: Any) -> None:
        print(json.dumps(message), file=speech, flush=True)

    stop = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; we obey TERM
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    folder = RunFolder(Path(argv[0]))
    manifest = folder.manifest()
    study = load(manifest["study"]).from_json(manifest["spec"])
    orders: SimpleQueue[int] = SimpleQueue()
    threading.Thread(target=_listen, args=(orders, stop), daemon=True).start()
    say(ready=True)
    while not stop.is_set():
        run = orders.get()
        if run < 0:
            break
        try:
            state = execute(
                folder,
                study,
                run,
                progress=lambda time, run=run: say(run=run, time=time),  # type: ignore[misc]
                interrupted=stop.is_set,
            )
        except AttnscopeError as error:
            say(run=run, error=str(error))
        else:
            say(run=run, done=state)


def _listen(orders: SimpleQueue[int], stop: threading.Event) -> None:
    for line in sys.stdin:
        orders.put(int(line))
        if int(line) < 0:
            return
    if not stop.is_set():
        os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
