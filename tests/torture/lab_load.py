"""Many people at the sliders of one lab: who gets an answer, and how long the next one waits.

    python -m tests.torture.lab_load --people 5 --seconds 15

Everybody opens the page's socket, waits for the first curves, and then drags a slider: a new wish
every 0.4 s, whether answers come or not, as a browser does. When all let go at once, somebody new
opens the page. What counts is the answer to everybody's last move.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

SLIDERS: dict[str, tuple[str, Sequence[float]]] = {
    "lu2021": ("m", range(1, 61)),
    "li2023": ("noise", (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)),
    "song2024": ("query_scale", (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0)),
    "snell2021": ("noise", (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
}
"""A slider of each world and its values."""
EVERY = 0.4
"""Seconds between two moves of one person."""
PROCESSES = 3
"""That do runs, the one in reserve included."""
PATIENCE = 300.0
"""Seconds after which somebody who waits gives up."""


@dataclass
class Person:
    """Somebody at the page.

    Args:
        address: of the lab.
        world: what is played.
        draw: the seed, so that no two people ask for the same run.
        setting: controls that are not as the world opens.
    """

    address: str
    world: str = "lu2021"
    draw: int = 0
    setting: dict[str, Any] = field(default_factory=dict)
    asked: int = 0
    answers: list[tuple[int, str, float]] = field(default_factory=list)
    """Number of the wish, kind of the answer, and when it came."""
    have: list[str] = field(default_factory=list)
    moved: float = 0.0

    async def __aenter__(self) -> Person:
        self.socket: WebSocketClientConnection = await websocket_connect(
            f"{self.address.replace('http', 'ws', 1)}play/socket", max_message_size=64 << 20
        )
        self._hearing = asyncio.create_task(self._hear())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.socket.close()
        await self._hearing

    async def _hear(self) -> None:
        while (text := await self.socket.read_message()) is not None:
            message = json.loads(text)
            if message["kind"] == "scene":
                self.have = [figure["signature"] for figure in message["scene"]["figures"]]
            self.answers.append((message.get("ask", 0), message["kind"], time.monotonic()))

    async def move(self, **setting: Any) -> None:
        """Ask for another setting."""
        self.asked += 1
        self.setting |= setting
        self.moved = time.monotonic()
        wanted = {"world": self.world, "setting": {**self.setting, "draw": self.draw}}
        text = json.dumps({"side": "a", "ask": self.asked, "have": self.have, **wanted})
        await self.socket.write_message(text)

    async def answered(self, patience: float = PATIENCE) -> float | None:
        """Wait for the answer to the last move; return the seconds from one to the other."""
        until = time.monotonic() + patience
        while time.monotonic() < until and not self._hearing.done():
            if self.answers and self.answers[-1][0] == self.asked:
                return self.answers[-1][2] - self.moved
            await asyncio.sleep(0.01)
        return None

    async def drag(self, seconds: float, every: float = EVERY) -> None:
        """Move the slider to and fro, and let go."""
        name, values = SLIDERS[self.world]
        source = random.Random(self.draw)
        place = source.randrange(len(values))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            place = min(max(place + source.choice((-2, -1, 1, 2)), 0), len(values) - 1)
            await self.move(**{name: values[place]})
            await asyncio.sleep(every * source.uniform(0.8, 1.2))


@dataclass(frozen=True)
class Load:
    """What came of it.

    Args:
        wishes: moves of everybody.
        answers: curves that came back while people dragged.
        last: seconds from everybody's last move to its curves, in ascending order; those who never
            got any are left out.
        people: how many dragged.
        visitor: seconds that the next one waited, or None.
        processes: workers that the lab started after the beginning.
        refused: people whom the lab did not let in.
    """

    wishes: int
    answers: int
    last: tuple[float, ...]
    people: int
    visitor: float | None
    processes: int
    refused: int = 0

    def __str__(self) -> str:
        last = f"{len(self.last)} of {self.people}"
        if self.last:
            middle = self.last[len(self.last) // 2]
            last += f", median {middle:.2f} s, the slowest {self.last[-1]:.2f} s"
        waited = "never" if self.visitor is None else f"{self.visitor:.2f} s"
        refused = f"; {self.refused} were not let in" if self.refused else ""
        return (
            f"{self.people} people, {self.wishes} wishes, {self.answers} answered meanwhile; "
            f"last moves answered: {last}; the next visitor: {waited}; "
            f"processes started anew: {self.processes}{refused}"
        )


async def load(
    address: str,
    lab: int,
    people: int,
    seconds: float,
    *,
    worlds: Sequence[str] = ("lu2021",),
    every: float = EVERY,
    setting: dict[str, Any] | None = None,
    first: int = 1,
) -> Load:
    """Let people drag sliders, and count.

    Args:
        address: of the lab.
        lab: its process.
        people: how many.
        seconds: that they drag.
        worlds: what they play, in turns.
        every: seconds between two moves.
        setting: controls that are not as the world opens.
        first: the seed of the first person; a run that was done before would cost nothing.
    """
    group = [
        Person(address, worlds[n % len(worlds)], first + n, dict(setting or {}))
        for n in range(people)
    ]
    seen = children(lab)
    before = len(seen)
    watch = asyncio.create_task(_watch(lab, seen))
    came = await asyncio.gather(*(p.__aenter__() for p in group), return_exceptions=True)
    inside = [person for person in came if isinstance(person, Person)]
    try:
        for person in inside:
            await person.move()
        await asyncio.gather(*(person.answered() for person in inside))
        begun = [len(person.answers) for person in inside]
        opened = sum(person.asked for person in inside)
        await asyncio.gather(*(person.drag(seconds, every) for person in inside))
        meanwhile = sum(
            kind == "scene"
            for person, start in zip(inside, begun, strict=True)
            for _, kind, _ in person.answers[start:]
        )
        visitor = asyncio.create_task(_visit(address, first + people, setting))
        waited = await asyncio.gather(*(person.answered() for person in inside))
        last = [
            seconds
            for person, seconds in zip(inside, waited, strict=True)
            if seconds is not None and person.answers[-1][1] == "scene"
        ]
        wait = await visitor
        wishes = sum(person.asked for person in inside) - opened
        refused = people - len(inside)
        new = len(seen) - before
        return Load(wishes, meanwhile, tuple(sorted(last)), len(inside), wait, new, refused)
    finally:
        watch.cancel()
        await asyncio.gather(*(person.__aexit__() for person in inside))


async def _visit(address: str, draw: int, setting: dict[str, Any] | None) -> float | None:
    async with Person(address, draw=draw, setting=dict(setting or {})) as person:
        await person.move()
        return await person.answered()


def children(process: int) -> set[int]:
    """Return the processes that a process has started and that still run."""
    found: set[int] = set()
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        found |= {int(each) for each in path.read_text().split()}
    return found


async def _watch(lab: int, seen: set[int]) -> None:
    while True:
        seen |= children(lab)
        await asyncio.sleep(0.1)


@asynccontextmanager
async def running_lab(
    runs: Path, *, settle: float = 10.0, cwd: Path | None = None
) -> AsyncIterator[tuple[str, int]]:
    """Start ``attnscope lab``; yield its address and its process once it has answered a wish.

    Args:
        runs: the folder.
        settle: seconds that its last process gets to be ready.
        cwd: where it is started.
    """
    command = [str(Path(sys.executable).with_name("attnscope")), "lab", str(runs)]
    lab = await asyncio.create_subprocess_exec(
        *command, "--port", "0", "--no-open", stdout=subprocess.PIPE, cwd=cwd
    )
    try:
        assert lab.stdout is not None
        first = (await lab.stdout.readline()).decode().split()
        if not first:
            raise RuntimeError("the lab did not start: it says why above")
        async with Person(first[-1], "lu2021", 9_999, {"m": 2, "dictionary": 20}) as person:
            await person.move()
            await person.answered()
        while len(children(lab.pid)) < PROCESSES:
            await asyncio.sleep(0.1)
        await asyncio.sleep(settle)
        yield first[-1], lab.pid
    finally:
        if lab.returncode is None:
            lab.terminate()
        await lab.wait()


async def _main(people: Sequence[int], seconds: float, worlds: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as runs:
        async with running_lab(Path(runs)) as (address, lab):
            first = 1
            for count in people:
                found = await load(address, lab, count, seconds, worlds=worlds, first=first)
                print(found, flush=True)
                first += count + 1


def main() -> int:
    """Print what came of it, a line for each number of people."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--people", type=int, nargs="+", default=[5])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--worlds", nargs="+", choices=SLIDERS, default=["lu2021"])
    asked = parser.parse_args()
    asyncio.run(_main(asked.people, asked.seconds, asked.worlds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
