"""What draws in a process of its own: parts as they come, sentences for what goes wrong."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from attnscope.errors import AttnscopeError
from attnscope.lab.renderer import Renderer


def counts(to: int) -> Iterator[dict[str, Any]]:
    for number in range(to):
        yield {"number": number, "process": os.getpid()}


def complains() -> Iterator[dict[str, Any]]:
    yield {"number": 0}
    raise AttnscopeError("a sentence")


def breaks() -> Iterator[dict[str, Any]]:
    yield {"number": 0}
    raise ValueError("a bug")


def dies() -> Iterator[dict[str, Any]]:
    yield {"number": 0}
    os._exit(3)


def sleeps() -> Iterator[dict[str, Any]]:
    time.sleep(600)
    yield {}


async def gather(renderer: Renderer, function: Any, *given: Any) -> list[dict[str, Any]]:
    return [part async for part in renderer.draw(function, *given)]


def test_parts_sentences_and_deaths(capfd: pytest.CaptureFixture[str]) -> None:
    # One test, since every process takes seconds to start.
    async def talk() -> None:
        renderer = Renderer()
        await renderer.warm_up()
        try:
            parts = await gather(renderer, counts, 3)
            assert [part["number"] for part in parts] == [0, 1, 2]
            (process,) = {part["process"] for part in parts}
            assert process != os.getpid()
            with pytest.raises(AttnscopeError, match=r"^a sentence$"):
                await gather(renderer, complains)
            with pytest.raises(AttnscopeError, match="This could not be drawn"):
                await gather(renderer, breaks)
            # Who leaves early does not spoil what others ask.
            async with aclosing(renderer.draw(counts, 5)) as drawing:
                async for _ in drawing:
                    break
            both = await asyncio.gather(*(gather(renderer, counts, 2) for _ in range(2)))
            assert [[part["number"] for part in parts] for parts in both] == [[0, 1], [0, 1]]
            assert both[0][0]["process"] == process
            with pytest.raises(AttnscopeError, match="broke down"):
                await gather(renderer, dies)
            parts = await gather(renderer, counts, 1)
            assert parts[0]["process"] != process
            renderer.patience = 0.2
            with pytest.raises(AttnscopeError, match=r"longer than 0\.2 seconds and was ended"):
                await gather(renderer, sleeps)
        finally:
            renderer.close()

    asyncio.run(talk())
    assert "ValueError: a bug" in capfd.readouterr().err
