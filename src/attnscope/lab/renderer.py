"""A process that opens and draws trajectories, so that the server never waits for one.

One thing is drawn at a time, and its parts are sent as they are ready. What takes too long is ended
together with its process, and the next request starts a new one: a run that cannot be read costs
its page, not the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.workers import Worker, WorkerDied

PATIENCE = 60.0
"""Seconds that one part may take to draw."""
START = 300.0
"""Seconds that the process may take to begin: its imports are not drawing."""


class Renderer:
    """Runs generators of this package in a process of its own, one after the other."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._worker: Worker | None = None
        self._turn = asyncio.Lock()

    async def draw(
        self, function: Callable[..., Iterator[dict[str, Any]]], *given: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what ``function(*given)`` yields over there.

        Raises:
            AttnscopeError: it raised one, took too long, or broke down; always a sentence.
        """
        async with self._turn:
            worker = await self._start()
            worker.send(lambda job: function(*given))
            kind = "part"
            try:
                while kind == "part":
                    kind, value = await self._message(worker, self.patience)
                    if kind == "part":
                        yield value
                if kind == "bug":
                    print(value, file=sys.stderr)
                    value = "This could not be drawn. The terminal of the lab says why."
                if kind != "done":
                    raise AttnscopeError(value)
            finally:
                # Whoever asked may be gone, and what is left must not answer the next request.
                worker.cancel()
                while kind == "part" and self._worker is worker:
                    kind, _ = await self._message(worker, self.patience)

    async def warm_up(self) -> None:
        """Start the process before it is needed."""
        async with self._turn:
            with contextlib.suppress(AttnscopeError):  # The next request will say it.
                await self._start()

    async def _start(self) -> Worker:
        if self._worker is not None and self._worker.process.poll() is not None:
            self.close()
        if self._worker is None:
            self._worker = Worker(_warm_up)
            kind, sentence = await self._message(self._worker, START)
            if kind != "ready":
                raise AttnscopeError(sentence)
        return self._worker

    async def _message(self, worker: Worker, patience: float) -> tuple[str, Any]:
        try:
            return await worker.message(patience)
        except WorkerDied as death:
            print(death, file=sys.stderr)
            self.close()
            return "sorry", "Drawing this broke down, perhaps for want of memory."
        except TimeoutError:
            self.close()
            return "sorry", f"Drawing this took longer than {patience:g} seconds and was ended."

    def close(self) -> None:
        """End the process, if there is one; the next request starts another."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()


def _warm_up() -> None:
    from attnscope.lab import overlay  # noqa: F401  imported now, not at the first request

    warnings.simplefilter("ignore")  # half a run has empty means
