"""A process that opens and draws trajectories, so that the server never waits for one.

One thing is drawn at a time, and its parts are sent as they are ready. What takes too long is ended
together with its process, and the next question starts a new one: a run that cannot be read costs
its page, not the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import threading
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from attnscope.errors import AttnscopeError

PATIENCE = 60.0
"""Seconds that one part may take to draw."""
START = 300.0
"""Seconds that the process may take to begin."""


class Draughtsman:
    """Runs generators of this package in a process of its own, one after the other."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._process: Any = None
        self._pipe: Connection | None = None
        self._turn = asyncio.Lock()
        self._changing = threading.Lock()
        self._closed = False

    async def draw(
        self, function: Callable[..., Iterator[dict[str, Any]]], *given: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what ``function(*given)`` yields over there.

        Raises:
            AttnscopeError: it raised one, took too long, or broke down; always a sentence.
        """
        async with self._turn:
            await asyncio.to_thread(self._send, function, given)
            kind = "part"
            try:
                while kind == "part":
                    kind, value = await asyncio.to_thread(self._receive)
                    if kind == "part":
                        yield value
                    elif kind == "sorry":
                        raise AttnscopeError(value)
            finally:
                # Whoever asked may be gone, and what is left must not answer the next question.
                while kind == "part" and self._pipe is not None:
                    kind, _ = await asyncio.to_thread(self._receive)

    async def warm_up(self) -> None:
        """Start the process before it is needed."""
        async with self._turn:
            with contextlib.suppress(OSError, EOFError):  # The next question will say it.
                await asyncio.to_thread(self._begin)

    def _send(self, function: Callable[..., Any], given: tuple[Any, ...]) -> None:
        try:
            self._begin().send((function, given))
        except (OSError, EOFError):
            self.stop()
            raise AttnscopeError("The process that draws did not start. Try again.") from None

    def _receive(self) -> tuple[str, Any]:
        pipe = self._pipe
        try:
            if pipe is None:
                raise EOFError
            if pipe.poll(self.patience):
                kind, value = pipe.recv()
                return kind, value
        except (OSError, EOFError):
            self.stop()
            return "sorry", "Drawing this broke down, perhaps for want of memory."
        self.stop()
        return "sorry", f"Drawing this took longer than {self.patience:g} seconds and was ended."

    def _begin(self) -> Connection:
        with self._changing:
            if self._closed:
                raise EOFError
            if self._pipe is not None and self._process.is_alive():
                return self._pipe
            self._end()
            context = multiprocessing.get_context("spawn")
            pipe, theirs = context.Pipe()
            self._pipe = pipe
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        # Its imports take seconds, a minute on a crowded machine: that is not drawing.
        if not pipe.poll(START):
            raise EOFError
        pipe.recv()
        return pipe

    def stop(self) -> None:
        """End the process, if there is one; the next question starts another."""
        with self._changing:
            self._end()

    def close(self) -> None:
        """End the process for good."""
        self._closed = True
        self.stop()

    def _end(self) -> None:
        process, pipe = self._process, self._pipe
        self._process = self._pipe = None
        if process is not None:
            process.kill()
            process.join()
            process.close()
        if pipe is not None:
            pipe.close()


def _serve(pipe: Connection) -> None:
    # The server may end at any moment, also while this process is still starting.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        _answer(pipe)


def _answer(pipe: Connection) -> None:
    import signal
    import traceback

    import torch

    from attnscope.lab import overlay  # noqa: F401  imported now, not at the first question

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, which ends us
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # half a run has empty means
    pipe.send("ready")
    while True:
        try:
            function, given = pipe.recv()
        except EOFError:
            return
        try:
            for part in function(*given):
                pipe.send(("part", part))
        except AttnscopeError as error:
            pipe.send(("sorry", str(error)))
        except Exception:
            traceback.print_exc()
            pipe.send(
                (
                    "sorry",
                    "This could not be drawn. The reason stands in the terminal where the lab was "
                    "started.",
                )
            )
        else:
            pipe.send(("end", None))
