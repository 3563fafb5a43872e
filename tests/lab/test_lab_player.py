"""The processes behind the sliders: the latest request wins, and nothing brings them down."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import Mock

import pytest

from attnscope.errors import AttnscopeError
from attnscope.lab import player as player_module
from attnscope.lab import work
from attnscope.lab.play import Session, document
from attnscope.lab.player import Player
from attnscope.workers import Job

TINY = {"m": 2, "dictionary": 20, "dim": 4}


def job(**setting: Any) -> dict[str, Any]:
    return {"world": "lu2021", "setting": {**TINY, **setting}, "have": []}


def play(act: Callable[[Player], Awaitable[None]], **options: Any) -> None:
    """Run a story with a player of one process."""

    async def whole() -> None:
        player = Player(workers=1, **options)
        player.start()
        try:
            await asyncio.wait_for(act(player), 280)
        finally:
            await player.stop()
        assert player.workers == []

    asyncio.run(whole())


async def heard(answers: list[Any], count: int) -> None:
    while len(answers) < count:
        await asyncio.sleep(0.02)


def test_the_latest_request_wins_and_a_lost_process_is_replaced() -> None:
    async def act(player: Player) -> None:
        client, answers = player.client(), []
        for m in range(1, 21):
            player.request(client, job(m=m), lambda answer, m=m: answers.append((m, answer)))
        await heard(answers, 1)
        # All requests came before the process was ready, so the last alone was done.
        assert [m for m, _ in answers] == [20]
        assert answers[0][1]["kind"] == "scene"
        assert player.runs == 1

        answers.clear()
        for m in range(1, 21):
            player.request(client, job(m=m), lambda answer, m=m: answers.append((m, answer)))
            await asyncio.sleep(0.01)
        await heard(answers, 1)
        while answers[-1][0] != 20:
            await asyncio.sleep(0.02)
        assert len(answers) < 20
        assert [m for m, _ in answers] == sorted(m for m, _ in answers)

        # A second client is served as well, and both get their own.
        other, theirs = player.client(), []
        answers.clear()
        player.request(client, job(m=5), lambda answer: answers.append(answer))
        player.request(other, job(m=6), lambda answer: theirs.append(answer))
        await heard(theirs, 1)
        assert answers[0]["text"] != theirs[0]["text"]
        player.leave(other)
        assert other not in player.clients

        answers.clear()
        player.request(client, job(m=7), lambda answer: answers.append(answer))
        while client.limit is None:
            await asyncio.sleep(0)
        player.workers[0].process.kill()
        await heard(answers, 1)
        assert answers[0]["kind"] == "sorry"
        assert "Another one has taken its place" in answers[0]["sentence"]
        player.request(client, job(m=8), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert answers[1]["kind"] == "scene"

        # One that dies while nobody needs it is replaced without a word.
        player.workers[0].process.kill()
        player.workers[0].process.wait()
        player.request(client, job(m=9), lambda answer: answers.append(answer))
        await heard(answers, 3)
        assert answers[2]["kind"] == "scene"

    play(act)


def test_a_run_that_is_not_wanted_or_takes_too_long_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(player_module, "PATIENCE", 0.0)
    long = {
        "world": "song2024",
        "setting": {"query_scale": 3.0, "width": 32, "sequences": 15, "until": 1000.0},
        "have": [],
    }

    async def act(player: Player) -> None:
        client, answers = player.client(), []
        player.request(client, job(), lambda answer: answers.append(answer))
        await heard(answers, 1)  # the process is ready from here on
        answers.clear()

        player.request(client, long, lambda answer: answers.append(answer))
        (worker,) = player.workers
        await asyncio.sleep(0.2)
        player.forget(client)
        while client.limit is not None:
            await asyncio.sleep(0.02)
        assert answers == []
        assert player.workers == [worker]  # it obeyed, so it lives on

        player.request(client, long, lambda answer: answers.append(answer))
        await asyncio.sleep(0.1)
        player.request(client, job(m=3), lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers[0]["kind"] == "scene"
        answers.clear()

        player.seconds = 0.3
        player.request(client, long, lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert "takes longer than 0.3 seconds" in answers[0]["sentence"]

    play(act)


def test_a_session_answers_sentences_and_never_raises() -> None:
    said: list[dict[str, Any]] = []

    async def act(player: Player) -> None:
        session = Session(player, lambda text: said.append(json.loads(text)))
        for text in (
            "nonsense",
            "[]",
            "{}",
            '{"side": "z"}',
            '{"side": ["a"]}',
            '{"side": "a", "ask": 1, "world": "mars"}',
            '{"side": "a", "ask": 2, "world": "lu2021"}',
        ):
            session.receive(text)
        assert [message["kind"] for message in said] == ["sorry"] * 7
        assert "there is no world 'mars'" in said[5]["sentence"]
        said.clear()
        apart = {"side": "a", "ask": 3, "world": "lu2021", "setting": {"dim": 2, "topics": 9}}
        session.receive(json.dumps(apart))
        await heard(said, 1)
        assert "expected 9 dimensions" in said[0]["sentence"]
        said.clear()
        wanted = {"side": "b", "ask": 4, "world": "lu2021", "setting": {**TINY, "m": 999}}
        session.receive(json.dumps({**wanted, "have": "x"}))
        await heard(said, 1)
        (answer,) = said
        assert (answer["side"], answer["ask"], answer["kind"]) == ("b", 4, "scene")
        assert answer["setting"]["m"] == 60
        assert answer["notes"] == ["m = 999 became 60: expected 1 to 60."]
        assert "item" in answer["scene"]["figures"][0]
        have = [figure["signature"] for figure in answer["scene"]["figures"]]
        session.receive(json.dumps({**wanted, "ask": 5, "have": have}))
        await heard(said, 2)
        assert "item" not in said[1]["scene"]["figures"][0]
        session.receive('{"side": "b", "stop": true, "ask": 5}')
        assert said[2]["kind"] == "stopped"
        session.close()
        assert player.clients == []

    play(act)


@pytest.mark.parametrize(
    "error",
    [MemoryError(), RuntimeError("can't allocate memory: 3 bytes")],
    ids=["python", "torch"],
)
def test_a_run_that_needs_too_much_memory_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from attnscope.lab.worlds import scene as scene_module

    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(scene_module, "scene", broken)
    with pytest.raises(AttnscopeError, match="needs more memory than a run may have"):
        work.answer(job(), Mock(spec=Job))


def test_a_bug_and_a_process_that_does_not_start_are_sentences(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("some secret")

    async def act(player: Player) -> None:
        client, answers = player.client(), []
        player.request(client, job(), lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert "Something went wrong that should not" in answers[0]["sentence"]
        assert "some secret" not in answers[0]["sentence"]
        assert "ValueError: some secret" in capsys.readouterr().err
        monkeypatch.setattr(work, "warm_up", broken)
        player.workers[0].process.kill()
        player.workers[0].process.wait()
        player.request(client, job(), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert "No process could be started" in answers[1]["sentence"]
        assert "ValueError: some secret" in capsys.readouterr().err

    monkeypatch.setattr(work, "warm_up", None)
    monkeypatch.setattr(work, "answer", broken)
    play(act)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_run_beyond_the_limit_on_memory_ends_and_the_next_one_works() -> None:
    async def act(player: Player) -> None:
        client, answers = player.client(), []
        big = job(m=20, dictionary=2000, dim=100)
        player.request(client, big, lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers[0]["kind"] == "sorry"
        assert "memory" in answers[0]["sentence"]
        player.request(client, job(), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert answers[1]["kind"] == "scene"

    play(act, memory=2 << 20)


def test_words_of_an_address_are_text_on_the_page() -> None:
    page = document("m=</script><script>alert(1)</script>&world=<b>")
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
