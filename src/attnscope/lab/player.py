"""Who does the runs: a few warm processes, and for every client at most one run that is wanted.

Each side of a page is a client, and asks for one setting at a time. A newer request replaces the
one that waits, so that however fast a slider moves, no queue builds up. Turns are fair: whoever was
served longest ago is next, and somebody who has just come before everybody else; the two sides of a
page share their turns.

What is begun is finished unless it is long. A run of which a newer version is wanted may take
twice as long as the last one of its client took, and longer each time one was given up, so that on
a busy machine somebody who drags a slider sees curves all the same. A run that is given up stops
between two steps of its solver and its process goes on with the next request. One process more than
should work at a time is kept warm. It takes over at once when another dies or does not stop, and it
helps out when another is held up by a long run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time as clock
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from attnscope.lab import work
from attnscope.workers import Worker, WorkerDied

PATIENCE = 0.6
"""Seconds that every run may go on although something newer is wanted: it is nearly there."""
END_OF_PATIENCE = 4.0
"""Seconds after which none may."""
LONG = 2.0
"""Seconds after which a run does not count as one of those that are done at a time."""
GRACE = 30.0
"""Seconds that a run gets to stop, before its process is ended. A busy machine is no reason."""
KEPT = 128
"""Answers that are kept, about 100 kB each: a class that opens one link asks for one run."""
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

    @property
    def key(self) -> str:
        """The same text for the same run and the same figures to draw."""
        return json.dumps(self.wanted, sort_keys=True)


@dataclass
class Turns:
    """When somebody's turn was last, on the clock of the player; 0 for one who has just come."""

    last: int = 0


@dataclass(eq=False)
class Client:
    """One side of one session: what it waits for, and what is being done for it."""

    turns: Turns = field(default_factory=Turns)
    waiting: Request | None = None
    running: Request | None = None
    begun: float = 0.0
    patience: float = PATIENCE
    busy: bool = False
    """Whether a process works for this client."""
    limit: asyncio.Timeout | None = None
    """Until when it may."""

    def answer(self, answer: Answer) -> None:
        """Answer what runs, unless it was cancelled."""
        request, self.running = self.running, None
        if request is not None:
            _call(request, answer)

    def cancel(self) -> None:
        """Let the time of what runs be over."""
        self.running = None
        self._end(0.0)

    def supersede(self, newer: Request) -> None:
        """Let something newer wait; what runs ends soon, at once if another world is wanted."""
        self.waiting = newer
        if self.running is not None and self.running.wanted["world"] == newer.wanted["world"]:
            self._end(self.begun + self.patience)
        else:
            self.cancel()

    def resume(self, request: Request, seconds: float) -> bool:
        """Let what runs go on if it is what is wanted again: the slider is back where it was."""
        if self.running is None or self.running.wanted != request.wanted:
            return False
        if self.limit is None or self.limit.expired():
            return False
        self.running, self.waiting = request, None
        self.limit.reschedule(self.begun + seconds)
        return True

    def _end(self, when: float) -> None:
        """Let what runs end at a time, if it would end later."""
        if self.limit is None or self.limit.expired():
            return
        ends = self.limit.when()
        if ends is None or when < ends:
            self.limit.reschedule(when)


class Player:
    """A pool of processes that do runs.

    Args:
        workers: how many work at a time; one more is kept ready.
        seconds: longest run.
        memory: bytes that a run may need.
    """

    def __init__(self, workers: int = 2, seconds: float = 20.0, memory: int = 1 << 30) -> None:
        self.count, self.seconds, self.memory = workers, seconds, memory
        self.workers: list[Worker] = []
        self.clients: list[Client] = []
        self.runs = self.turn = 0
        self._kept: OrderedDict[str, Answer] = OrderedDict()

    def start(self) -> None:
        """Start the processes, from within a running event loop, and return at once."""
        self._asked, self._warm = asyncio.Event(), asyncio.Semaphore(0)
        self._tasks = [asyncio.create_task(self._work(spare=n == 0)) for n in range(self.count + 1)]

    async def stop(self) -> None:
        """End all processes."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def client(self, turns: Turns | None = None) -> Client:
        """Return a new client, which can ask for one run at a time.

        Args:
            turns: those of somebody who has another client already.
        """
        self.clients.append(Client(turns or Turns()))
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
        request = Request(wanted, on_answer)
        if client.resume(request, self.seconds):
            return
        if (known := self._kept.get(request.key)) is not None:
            self.forget(client)
            _call(request, known)
            return
        client.supersede(request)
        self._asked.set()

    def forget(self, client: Client) -> None:
        """Cancel what a client waits for."""
        client.waiting = None
        client.cancel()

    async def _work(self, spare: bool) -> None:
        """Keep one process going, and give it what clients ask for."""
        if spare:  # It must not slow down the start of the others.
            for _ in range(self.count):
                await self._warm.acquire()
        ready = True
        while ready:
            ready = False  # One that dies at its start would do so again.
            with closing(Worker(work.warm_up, self.memory)) as worker:
                self.workers.append(worker)
                try:
                    await worker.message()
                    ready = True
                    self._warm.release()
                    while True:
                        if not await self._run(worker, await self._next()):
                            await worker.message(GRACE)
                except WorkerDied as death:
                    print(death, file=sys.stderr)
                except TimeoutError:
                    print(
                        f"attnscope lab: a run did not stop within {GRACE:g} seconds, and its "
                        "process was ended.",
                        file=sys.stderr,
                    )
                finally:
                    self.workers.remove(worker)
        self._warm.release()
        while not self.workers:
            (await self._next()).answer(_answer("none"))

    async def _next(self) -> Client:
        """Wait until a client waits for a run, and take the request of the one whose turn it is."""
        while True:
            now = clock.monotonic()
            going = sum(each.busy and now - each.begun < LONG for each in self.clients)
            ready = [each for each in self.clients if each.waiting and not each.busy]
            if ready and going < self.count:
                client = min(ready, key=lambda each: each.turns.last)
                client.running, client.waiting = client.waiting, None
                client.busy, client.begun = True, now
                self.turn += 1
                client.turns.last = self.turn
                return client
            self._asked.clear()
            await self._asked.wait()

    async def _run(self, worker: Worker, client: Client) -> bool:
        """Do what a client asks for; return whether the process can go on with something else."""
        request = client.running
        assert request is not None
        soon = asyncio.get_running_loop().call_later(LONG, self._asked.set)
        try:
            if (known := self._kept.get(request.key)) is not None:
                client.answer(known)
                return True
            if worker.process.poll() is not None:  # It died while idle: another does this.
                client.waiting, client.running = client.waiting or request, None
                client.turns.last = 0
                await worker.message()
            self.runs += 1
            worker.send(work.answer, request.wanted)
            async with asyncio.timeout(self.seconds) as client.limit:
                kind, value = await worker.message()
            took = clock.monotonic() - client.begun
            client.patience = min(max(PATIENCE, 2 * took), END_OF_PATIENCE)
            if kind == "bug":
                print(value, file=sys.stderr)
            answer = _answer(kind, value)
            if kind == "done":
                self._keep(request, answer)
            client.answer(answer)
            return True
        except TimeoutError:
            if client.waiting is None:
                client.answer(_answer("sorry", LATE.format(self.seconds)))
            elif client.running is not None:
                # On a busy machine the next one would not get further in the same time.
                client.running = None
                client.patience = min(2 * client.patience, END_OF_PATIENCE)
            worker.cancel()
            return False
        except WorkerDied:
            client.answer(_answer("died"))
            raise
        finally:
            soon.cancel()
            client.limit, client.busy = None, False
            self._asked.set()

    def _keep(self, request: Request, answer: Answer) -> None:
        self._kept[request.key] = answer
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _call(request: Request, answer: Answer) -> None:
    asyncio.get_running_loop().call_soon(request.on_answer, answer)


def _answer(kind: str, value: str = "") -> Answer:
    if kind == "done":
        return {"kind": "scene", "text": value}
    return {"kind": "sorry", "sentence": SORRY.get(kind, value)}
