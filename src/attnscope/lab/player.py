"""Who does the runs: a few warm processes, and for every client at most one run that is wanted.

Each side of a page is a client, and asks for one setting at a time. A newer request replaces the
one that waits, so that however fast a slider moves, no queue builds up; a run that has gone on for
a while is cancelled for it. Processes are started before they are needed, with one thread each, a
limit on memory, and a limit on time after which they are replaced.
"""

from __future__ import annotations

import asyncio
import sys
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from attnscope.lab import work
from attnscope.workers import Worker, WorkerDied

PATIENCE = 0.6
"""Seconds that a run may go on although something newer is wanted: it is nearly there."""
GRACE = 2.0
"""Seconds that a process gets to cancel its run, before it is ended."""

OnAnswer = Callable[[dict[str, Any]], None]


@dataclass
class Request:
    """A run that somebody waits for."""

    wanted: dict[str, Any]
    on_answer: OnAnswer


@dataclass(eq=False)
class Client:
    """One side of one session: what it waits for, and what is being done for it."""

    waiting: Request | None = None
    running: Slot | None = None


@dataclass(eq=False)
class Slot:
    """A process, and what it is doing."""

    worker: Worker
    ready: bool = False
    client: Client | None = None
    request: Request | None = None
    begun: float = 0.0
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)


class Player:
    """A pool of processes that do runs.

    Args:
        workers: how many.
        seconds: longest run.
        memory: bytes that a run may need.
    """

    def __init__(self, workers: int = 2, seconds: float = 20.0, memory: int = 1 << 30) -> None:
        self.count, self.seconds, self.memory = workers, seconds, memory
        self.slots: list[Slot] = []
        self.clients: list[Client] = []
        self.runs = 0

    def start(self) -> None:
        """Start the processes, from within a running event loop, and return at once."""
        self.loop = asyncio.get_running_loop()
        for _ in range(self.count):
            self._start()

    def stop(self) -> None:
        """End all processes."""
        for slot in list(self.slots):
            self._end(slot)

    def client(self) -> Client:
        """Return a new client, which can ask for one run at a time."""
        client = Client()
        self.clients.append(client)
        return client

    def leave(self, client: Client) -> None:
        """Remove a client, and cancel what is done for it."""
        self.forget(client)
        if client in self.clients:
            self.clients.remove(client)

    def request(self, client: Client, wanted: dict[str, Any], on_answer: OnAnswer) -> None:
        """Ask for a run; it is answered unless something newer is asked for first.

        Args:
            client: who asks.
            wanted: what :func:`attnscope.lab.work.answer` takes.
            on_answer: is called once in the event loop.
        """
        client.waiting = Request(wanted, on_answer)
        running = client.running
        if running is not None and clock.monotonic() - running.begun > PATIENCE:
            self._cancel(running)
        self._assign()

    def forget(self, client: Client) -> None:
        """Cancel what a client waits for."""
        client.waiting = None
        if client.running is not None:
            self._cancel(client.running)

    def _assign(self) -> None:
        for client in list(self.clients):
            if client.waiting is None or client.running is not None:
                continue
            if not self.slots:
                client.waiting.on_answer(
                    _sorry(
                        "No process could be started to do this run (the terminal says why): "
                        "expected the lab to be started again."
                    )
                )
                client.waiting = None
                continue
            free = next((slot for slot in self.slots if slot.ready and slot.client is None), None)
            if free is None:
                return
            self._begin(free, client, client.waiting)
            # Whoever was served goes to the end of the row.
            self.clients.remove(client)
            self.clients.append(client)

    def _begin(self, slot: Slot, client: Client, request: Request) -> None:
        self.runs += 1
        slot.client, slot.request, slot.begun = client, request, clock.monotonic()
        client.running, client.waiting = slot, None
        slot.timer = self.loop.call_later(self.seconds, self._too_long, slot)
        slot.worker.send(work.answer, request.wanted)

    def _too_long(self, slot: Slot) -> None:
        request = slot.request
        self._cancel(slot)
        if request is not None:
            request.on_answer(
                _sorry(
                    f"This setting takes longer than {self.seconds:g} seconds and was stopped: "
                    "expected a smaller one."
                )
            )

    def _cancel(self, slot: Slot) -> None:
        """Ask a process to cancel its run, and replace it if it does not."""
        if slot.request is None:
            return
        slot.request = None
        slot.worker.cancel()
        if slot.timer is not None:
            slot.timer.cancel()
        slot.timer = self.loop.call_later(GRACE, self._replace, slot)

    def _replace(self, slot: Slot) -> None:
        self._end(slot)
        self._start()
        self._assign()

    def _start(self) -> None:
        slot = Slot(Worker(work.warm_up, self.memory))
        self.slots.append(slot)
        self.loop.add_reader(slot.worker.fileno(), self._receive, slot)

    def _end(self, slot: Slot) -> None:
        self.loop.remove_reader(slot.worker.fileno())
        self._free(slot)
        self.slots.remove(slot)
        slot.worker.close()

    def _free(self, slot: Slot) -> Request | None:
        if slot.timer is not None:
            slot.timer.cancel()
        if slot.client is not None:
            slot.client.running = None
        request, slot.client, slot.request, slot.timer = slot.request, None, None, None
        return request

    def _receive(self, slot: Slot) -> None:
        try:
            kind, value = slot.worker.receive()
        except WorkerDied as death:
            self._lost(slot, death)
            return
        slot.ready = True
        request = self._free(slot)
        if kind == "bug":
            print(value, file=sys.stderr)
        if request is not None:
            request.on_answer(_answer(kind, value))
        self._assign()

    def _lost(self, slot: Slot, death: WorkerDied) -> None:
        """Go on after a process has died, as it does when the machine is short of memory."""
        print(death, file=sys.stderr)
        request = slot.request
        self._end(slot)
        if request is not None:
            request.on_answer(
                _sorry(
                    "The process that did this run ended, perhaps for want of memory: expected a "
                    "smaller setting. Another one has taken its place."
                )
            )
        if slot.ready:  # One that dies at its start would do so again.
            self._start()
        self._assign()


def _answer(kind: str, value: str) -> dict[str, Any]:
    if kind == "done":
        return {"kind": "scene", "text": value}
    if kind == "bug":
        return _sorry(
            "Something went wrong that should not (the terminal says what): expected the run to "
            "end. Another setting may work."
        )
    return _sorry(value)


def _sorry(sentence: str) -> dict[str, Any]:
    return {"kind": "sorry", "sentence": sentence}
