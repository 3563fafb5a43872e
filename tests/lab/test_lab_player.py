"""The processes behind the sliders: the latest wish wins, and nothing brings them down."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from attnscope.lab import player as player_module
from attnscope.lab import work
from attnscope.lab.play import Session, document
from attnscope.lab.player import Player

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
            player.stop()
        assert player.workers == []

    asyncio.run(whole())


async def heard(answers: list[Any], count: int) -> None:
    while len(answers) < count:
        await asyncio.sleep(0.02)


def test_the_latest_wish_wins_and_a_lost_process_is_replaced() -> None:
    async def act(player: Player) -> None:
        seat, answers = player.seat(), []
        for m in range(1, 21):
            player.want(seat, job(m=m), lambda answer, m=m: answers.append((m, answer)))
        await heard(answers, 1)
        # All wishes came before the process was ready, so the last alone was done.
        assert [m for m, _ in answers] == [20]
        assert answers[0][1]["kind"] == "scene"
        assert player.jobs == 1

        answers.clear()
        for m in range(1, 21):
            player.want(seat, job(m=m), lambda answer, m=m: answers.append((m, answer)))
            await asyncio.sleep(0.01)
        await heard(answers, 1)
        while answers[-1][0] != 20:
            await asyncio.sleep(0.02)
        assert len(answers) < 20
        assert [m for m, _ in answers] == sorted(m for m, _ in answers)

        # A second seat is served as well, and both get their own.
        other, theirs = player.seat(), []
        answers.clear()
        player.want(seat, job(m=5), lambda answer: answers.append(answer))
        player.want(other, job(m=6), lambda answer: theirs.append(answer))
        await heard(theirs, 1)
        assert answers[0]["text"] != theirs[0]["text"]
        player.leave(other)
        assert other not in player.seats

        answers.clear()
        player.want(seat, job(m=7), lambda answer: answers.append(answer))
        player.workers[0].process.kill()
        await heard(answers, 1)
        assert answers[0]["kind"] == "sorry"
        assert "Another one has taken its place" in answers[0]["sentence"]
        player.want(seat, job(m=8), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert answers[1]["kind"] == "scene"

    play(act)


def test_a_run_that_is_not_wanted_or_takes_too_long_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(player_module, "PATIENCE", 0.0)
    long = {
        "world": "song2024",
        "setting": {"query_scale": 3.0, "width": 32, "sequences": 15, "epochs": 10_000},
        "have": [],
    }

    async def act(player: Player) -> None:
        seat, answers = player.seat(), []
        player.want(seat, job(), lambda answer: answers.append(answer))
        await heard(answers, 1)  # the process is ready from here on
        answers.clear()

        player.want(seat, long, lambda answer: answers.append(answer))
        worker = player.workers[0]
        await asyncio.sleep(0.2)
        player.forget(seat)
        while worker.seat is not None:
            await asyncio.sleep(0.02)
        assert answers == []
        assert player.workers == [worker]  # it obeyed, so it lives on

        player.want(seat, long, lambda answer: answers.append(answer))
        await asyncio.sleep(0.1)
        player.want(seat, job(m=3), lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers[0]["kind"] == "scene"
        answers.clear()

        player.seconds = 0.3
        player.want(seat, long, lambda answer: answers.append(answer))
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
        assert player.seats == []

    play(act)


def test_a_run_that_needs_too_much_memory_or_breaks_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from attnscope.lab.worlds import scene as scene_module

    def fail(error: Exception) -> dict[str, Any]:
        def broken(*_: object) -> None:
            raise error

        monkeypatch.setattr(scene_module, "scene", broken)
        return work.answer(job(), lambda: False)

    assert "more memory" in fail(MemoryError())["sentence"]
    assert "more memory" in fail(RuntimeError("can't allocate memory: 3 bytes"))["sentence"]
    assert capsys.readouterr().err == ""
    answer = fail(ValueError("some secret"))
    assert "secret" not in answer["sentence"]
    assert "some secret" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")
def test_a_run_beyond_the_limit_on_memory_ends_and_the_next_one_works() -> None:
    async def act(player: Player) -> None:
        seat, answers = player.seat(), []
        big = job(m=20, dictionary=2000, dim=100)
        player.want(seat, big, lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers[0]["kind"] == "sorry"
        assert "memory" in answers[0]["sentence"]
        player.want(seat, job(), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert answers[1]["kind"] == "scene"

    play(act, memory=2 << 20)


def test_words_of_an_address_are_text_on_the_page() -> None:
    page = document("m=</script><script>alert(1)</script>&world=<b>")
    assert "<script>alert" not in page
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
