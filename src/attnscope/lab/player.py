"""Who does the runs: a few warm processes, and for every client at most one run that is wanted.

Each side of a page is a client, and asks for one setting at a time. A newer request replaces the
one that waits, so that however fast a slider moves, no queue builds up; a run that has gone on for
a while is cancelled for it. Processes are started before they are needed, with one thread each and
a limit on memory; one that dies, or does not stop when it should, is replaced.
"""

from __future__ import annotations

import asyncio
import sys
import time as clock
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from attnscope.lab import work
from attnscope.workers import Worker, WorkerDied

PATIENCE = 0.6
"""Seconds that a run may go on although something newer is wanted: it is nearly there."""
GRACE = 2.0
"""Seconds that a run gets to stop, before its process is ended."""
LATE = "This setting takes longer than {:g} seconds and was stopped: expected a smaller one."
SORRY = {
    "bug": "Something went wrong that should not (the terminal says what): expected the run to "
    "end. Another setting may work.",
    "died": "The process that did this run ended, perhaps for want of memory: expected a smaller "
    "setting. Another one has taken its place.",
    "none": "No process could be started to do this run (the terminal says why): expected the lab "
    "to be started again.",
}

Answer = dict[str, Any]


@dataclass
class Request:
    """A run that somebody waits for."""

    wanted: dict[str, Any]
    on_answer: Callable[[Answer], None]


@dataclass(eq=False)
class Client:
    """One side of one session: what it waits for, and what is being done for it."""

    waiting: Request | None = None
    running: Request | None = None
    begun: float = 0.0
    limit: asyncio.Timeout | None = None
    """Until when the run may go on; None if no process works for this client."""

    def answer(self, answer: Answer) -> None:
        """Answer what runs, unless it was cancelled."""
        request, self.running = self.running, None
        if request is not None:
            asyncio.get_running_loop().call_soon(request.on_answer, answer)

    def cancel(self) -> None:
        """Let the time of what runs be over."""
        if self.running is not None and self.limit is not None and not self.limit.expired():
            self.limit.reschedule(0)
        self.running = None


class Player:
    """A pool of processes that do runs.

    Args:
        workers: how many.
        seconds: longest run.
        memory: bytes that a run may need.
    """

    def __init__(self, workers: int = 2, seconds: float = 20.0, memory: int = 1 << 30) -> None:
        self.count, self.seconds, self.memory = workers, seconds, memory
        self.workers: list[Worker] = []
        self.clients: list[Client] = []
        self.runs = 0

    def start(self) -> None:
        """Start the processes, from within a running event loop, and return at once."""
        self._asked = asyncio.Event()
        self._tasks = [asyncio.create_task(self._work()) for _ in range(self.count)]

    async def stop(self) -> None:
        """End all processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def client(self) -> Client:
        """Return a new client, which can ask for one run at a time."""
        self.clients.append(Client())
        return self.clients[-1]

    def leave(self, client: Client) -> None:
        """Remove a client, and cancel what is done for it."""
        self.forget(client)
        if client in self.clients:
            self.clients.remove(client)

    def request(
        self, client: Client, wanted: dict[str, Any], on_answer: Callable[[Answer], None]
    ) -> None:
        """Ask for a run; it is answered unless something newer is asked for first.

        Args:
            client: who asks.
            wanted: what :func:`attnscope.lab.work.answer` takes.
            on_answer: is called once in the event loop.
        """
        client.waiting = Request(wanted, on_answer)
        if clock.monotonic() - client.begun > PATIENCE:
            client.cancel()
        self._asked.set()

    def forget(self, client: Client) -> None:
        """Cancel what a client waits for."""
        client.waiting = None
        client.cancel()

    async def _work(self) -> None:
        """Keep one process going, and give it what clients ask for."""
        ready = True
        while ready:
            ready = False  # One that dies at its start would do so again.
            with closing(Worker(work.warm_up, self.memory)) as worker:
                self.workers.append(worker)
                try:
                    await worker.message()
                    ready = True
                    while True:
                        await self._run(worker, await self._next())
                except WorkerDied as death:
                    print(death, file=sys.stderr)
                except TimeoutError:
                    pass  # It did not stop when it should.
                finally:
                    self.workers.remove(worker)
        while not self.workers:
            (await self._next()).answer(_answer("none"))

    async def _next(self) -> Client:
        """Wait until a client waits for a run, and take its request."""
        while True:
            for client in self.clients:
                if client.waiting is not None and client.limit is None:
                    client.running, client.waiting = client.waiting, None
                    # Whoever is served goes to the end of the row.
                    self.clients.remove(client)
                    self.clients.append(client)
                    return client
            self._asked.clear()
            await self._asked.wait()

    async def _run(self, worker: Worker, client: Client) -> None:
        request = client.running
        assert request is not None
        if worker.process.poll() is not None:  # It died while idle: its successor does this.
            client.waiting, client.running = client.waiting or request, None
            await worker.message()
        self.runs += 1
        client.begun, client.limit = clock.monotonic(), asyncio.timeout(self.seconds)
        worker.send(work.answer, request.wanted)
        try:
            async with client.limit:
                kind, value = await worker.message()
            if kind == "bug":
                print(value, file=sys.stderr)
            client.answer(_answer(kind, value))
        except TimeoutError:
            client.answer(_answer("sorry", LATE.format(self.seconds)))
            worker.cancel()
            await worker.message(GRACE)
        except WorkerDied:
            client.answer(_answer("died"))
            raise
        finally:
            client.limit = None
            self._asked.set()


def _answer(kind: str, value: str = "") -> Answer:
    if kind == "done":
        return {"kind": "scene", "text": value}
    return {"kind": "sorry", "sentence": SORRY.get(kind, value)}
