"""Hostile and slow connections: each is refused, ignored or closed, and the others are served."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import string
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_folders import ask, served
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, websocket_connect

from attnscope.lab import connections, wishes
from attnscope.lab.worlds import WORLDS, world

Place = tuple[str, int]
GOOD = {"side": "a", "ask": 7, "world": "lu2021", "setting": {"m": 30}, "have": ["x"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with served(tmp_path_factory.mktemp("runs")) as made:
        yield made


def at_socket(place: Place, act: Callable[[WebSocketClientConnection], Awaitable[None]]) -> None:
    async def whole() -> None:
        made = await websocket_connect(f"ws://{place[0]}:{place[1]}/play/socket")
        try:
            await asyncio.wait_for(act(made), 60)
        finally:
            await leave(made)

    asyncio.run(whole())


async def leave(page: WebSocketClientConnection) -> None:
    """Close it, and let the server hear of it."""
    page.close()
    with suppress(TimeoutError):  # Nothing comes from one that the server has closed before.
        async with asyncio.timeout(0.2):
            while await page.read_message() is not None:
                pass


def changed(**values: Any) -> str:
    return json.dumps({**GOOD, **values})


NONSENSE = {
    "no JSON": "nonsense",
    "no object": "[]",
    "empty": "{}",
    "no such side": changed(side="z"),
    "a side that is a list": changed(side=["a"]),
    "no setting": changed(setting=None),
    "400 digits": changed(setting={"m": 10**400}),
    "5,000 digits": changed().replace("30", "3" * 5000),
    "400 digits as the number": changed(ask=10**400),
    "a negative number": changed(ask=-1),
    "a number that is true": changed(ask=True),
    "no number": changed(setting={"m": math.nan}),
    "beyond all numbers": changed().replace("30", "1e999"),
    "half a letter as a world": changed(world="\ud800"),
    "half a letter as a value": changed(setting={"m": "\udfff"}),
    "half a letter as a name": changed(setting={"\ud800": 3}),
    "half a letter as a figure": changed(have=["\ud800"]),
    "1,000 names": changed(setting={f"n{n}": n for n in range(1000)}),
    "1,000 figures": changed(have=["x"] * 1000),
    "figures that are numbers": changed(have=[1]),
    "a long name": changed(setting={"m" * 5000: 3}),
    "a long world": changed(world="w" * 5000),
    "many brackets": "[" * 16_000,
    "many braces": '{"side":' * 2_000,
    "deep in a setting": changed().replace("30", "[" * 400 + "]" * 400),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_is_ignored_with_a_sentence(
    place: Place, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def act(page: WebSocketClientConnection) -> None:
        for _ in range(3):
            await page.write_message(NONSENSE[what])
            text = await page.read_message()
            assert text is not None
            answer = json.loads(text)
            assert answer["kind"] == "sorry"
            assert "expected" in answer["sentence"]
        await page.write_message(b"\xff\x00", binary=True)  # Bytes are not for us.
        await page.write_message(json.dumps(GOOD))
        text = await page.read_message()
        assert text is not None
        assert json.loads(text)["scene"]["setting"]["m"] == 30

    at_socket(place, act)
    said = capfd.readouterr().err
    assert said.count("attnscope lab: a message was ignored: ") == 1
    assert "Traceback" not in said


def test_a_message_that_is_too_long_ends_the_connection_and_nothing_else(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    names = changed(setting={f"name {n}": n for n in range(60_000)})
    for text in (names, "[" * 100_000, "x" * (9 << 20)):

        async def act(page: WebSocketClientConnection, text: str = text) -> None:
            with suppress(WebSocketClosedError):  # It may be closed before all of it is sent.
                await page.write_message(text)
            assert await page.read_message() is None
            assert page.close_code in (1009, None)

        at_socket(place, act)
    assert ask(place, "/").status == 200
    assert "Traceback" not in capfd.readouterr().err


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "side": st.sampled_from("ab") | json_values,
            "ask": st.integers(-1, 2**60) | json_values,
            "stop": st.booleans() | json_values,
            "world": st.sampled_from([each.key for each in WORLDS]) | json_values,
            "setting": st.dictionaries(st.sampled_from(["m", "noise", "draw"]), json_values),
            "have": st.lists(st.text(string.hexdigits)) | json_values,
        },
    )
)
def test_whatever_is_said_is_a_wish_or_nonsense(said: dict[str, Any]) -> None:
    try:
        wish = wishes.read(json.dumps(said), ("a", "b"))
    except wishes.NonsenseError:
        return
    for each in WORLDS:
        setting, notes = each.admit(wish.setting)
        assert set(setting) == set(each.defaults())
        "".join(notes).encode()


def test_the_nearest_value_of_a_slider_is_taken() -> None:
    for each in WORLDS:
        for control in each.controls:
            if isinstance(values := getattr(control, "values", None), tuple):
                for wanted in (*values, *(0.3 * a + 0.7 * b for a, b in pairwise(values))):
                    best = min(values, key=lambda known, wanted=wanted: abs(known - wanted))
                    assert control.admit(wanted)[0] == best
    assert world("lu2021").admit({"draw": "1" * 400})[0]["draw"] == 9_999
    assert world("lu2021").admit({"draw": 10**400})[0]["draw"] == 0


def test_there_is_room_for_so_many_pages(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_PAGES", 3)

    async def whole() -> None:
        address = f"ws://{place[0]}:{place[1]}/play/socket"
        pages = [await websocket_connect(address) for _ in range(3)]
        for page in pages:
            await page.write_message(json.dumps(GOOD))
            assert await page.read_message() is not None
        late = await websocket_connect(address)
        text = await late.read_message()
        assert text is not None
        assert "as many as this lab serves" in json.loads(text)["sentence"]
        assert await late.read_message() is None
        assert late.close_code == 1013
        await leave(pages.pop())
        for _ in range(500):  # A place is free as soon as the server has heard of it.
            again = await websocket_connect(address)
            await again.write_message(json.dumps(GOOD))
            text = await again.read_message()
            if text is not None and json.loads(text)["kind"] == "scene":
                break
            await leave(again)
        else:
            pytest.fail("nobody was let in again")
        for page in (*pages, again, late):
            await leave(page)

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_a_page_that_does_not_read_is_left(
    place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "UNREAD", 2)
    monkeypatch.setattr(connections.play.Session, "_answer", _much)
    with socket.create_connection(place, timeout=60) as page:
        page.sendall(
            b"GET /play/socket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert b"101" in page.recv(1000)
        text = json.dumps(GOOD).encode()
        frame = bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text  # a mask of zeros
        with suppress(ConnectionError):  # as soon as the server has closed it
            for _ in range(100_000):
                page.sendall(frame)
    assert "did not read its answers" in capfd.readouterr().err
    assert ask(place, "/").status == 200


def _much(self: Any, head: object, answer: object) -> None:
    self.send("x" * (8 << 20))


@pytest.mark.parametrize(
    "begun",
    [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
        b"",
        b"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nabc",
    ],
    ids=["headers", "nothing", "body"],
)
def test_who_is_slow_is_cut_off_and_the_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 0.5)
    monkeypatch.setattr(connections, "BODY_WITHIN", 0.5)
    with served(tmp_path) as place:
        slow = [socket.create_connection(place, timeout=60) for _ in range(20)]
        for each in slow:
            each.sendall(begun)
        assert ask(place, "/").status == 200
        for each in slow:
            while each.recv(1000):  # until the server closes it
                pass
            each.close()
        assert ask(place, "/").status == 200


def test_more_connections_than_there_is_room_for_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 5)
    with served(tmp_path) as place:
        held = [socket.create_connection(place, timeout=60) for _ in range(5)]
        for each in held:  # The server has taken all of them when it has answered all.
            each.sendall(b"GET /static/theme.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert each.recv(1000).startswith(b"HTTP/1.1 200")
        with socket.create_connection(place, timeout=60) as late:
            assert late.recv(1000) == b""
        for each in held:
            each.close()
        for _ in range(500):
            with socket.create_connection(place, timeout=60) as late:
                late.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                try:
                    if late.recv(1000).startswith(b"HTTP/1.1 200"):
                        return
                except ConnectionError:
                    continue
        pytest.fail("there was no room again")
