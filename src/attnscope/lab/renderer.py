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
from attnscope.workers import Job, Worker, WorkerDied

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
        self._closed = False

    async def draw(
        self, function: Callable[..., Iterator[dict[str, Any]]], *given: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what ``function(*given)`` yields over there.

        Raises:
            AttnscopeError: it raised one, took too long, or broke down; always a sentence.
        """
        async with self._turn:
            worker = await self._start()
            worker.send(_parts, function, given)
            kind = "part"
            try:
                while kind == "part":
                    kind, value = await self._receive(worker)
                    if kind == "part":
                        yield value
                    elif kind == "sorry":
                        raise AttnscopeError(value)
                    elif kind == "bug":
                        print(value, file=sys.stderr)
                        raise AttnscopeError(
                            "This could not be drawn. The reason stands in the terminal where the "
                            "lab was started."
                        )
            finally:
                # Whoever asked may be gone, and what is left must not answer the next request.
                worker.cancel()
                while kind == "part" and self._worker is worker:
                    kind, _ = await self._receive(worker)

    async def warm_up(self) -> None:
        """Start the process before it is needed."""
        async with self._turn:
            with contextlib.suppress(AttnscopeError):  # The next request will say it.
                await self._start()

    async def _start(self) -> Worker:
        if self._worker is not None and self._worker.process.poll() is not None:
            self._end()
        if self._closed:
            raise AttnscopeError("The lab has ended.")
        if self._worker is None:
            self._worker = Worker(_warm_up)
            try:
                await _message(self._worker, START)
            except (WorkerDied, TimeoutError) as error:
                self._end(error)
                raise AttnscopeError("The process that draws did not start. Try again.") from None
        return self._worker

    async def _receive(self, worker: Worker) -> tuple[str, Any]:
        try:
            return await _message(worker, self.patience)
        except WorkerDied as death:
            self._end(death)
            return "sorry", "Drawing this broke down, perhaps for want of memory."
        except TimeoutError:
            self._end()
            took = f"longer than {self.patience:g} seconds"
            return "sorry", f"Drawing this took {took} and was ended."

    def _end(self, why: Exception | None = None) -> None:
        if why is not None and not self._closed:
            print(why, file=sys.stderr)
        if self._worker is not None:
            self._worker.close()
        self._worker = None

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        if self._worker is not None and self._turn.locked():
            self._worker.process.kill()  # Whoever waits for it learns this, and ends it.
        else:
            self._end()


async def _message(worker: Worker, patience: float) -> tuple[str, Any]:
    """Wait for a message without standing in the way of others."""
    loop, place, came = asyncio.get_running_loop(), worker.fileno(), asyncio.Event()
    loop.add_reader(place, came.set)
    try:
        await asyncio.wait_for(came.wait(), patience)
    finally:
        loop.remove_reader(place)
    return worker.receive()


def _warm_up() -> None:
    from attnscope.lab import overlay  # noqa: F401  imported now, not at the first request

    warnings.simplefilter("ignore")  # half a run has empty means


def _parts(
    function: Callable[..., Iterator[dict[str, Any]]], given: tuple[Any, ...], job: Job
) -> Iterator[dict[str, Any]]:
    yield from function(*given)
