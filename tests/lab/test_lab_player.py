"""The processes behind the sliders: the latest request wins, and nothing brings them down."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from unittest.mock import Mock

import pytest

from attnscope.errors import AttnscopeError
from attnscope.lab import player as player_module
from attnscope.lab import work
from attnscope.lab.play import Session, document
from attnscope.lab.player import Player, Turns
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


def kill_all(player: Player) -> None:
    for worker in player.workers:
        worker.process.kill()
        worker.process.wait()


async def heard(answers: list[Any], count: int) -> None:
    while len(answers) < count:
        await asyncio.sleep(0.02)


def test_the_latest_request_wins() -> None:
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
        await heard(answers, 1)
        assert answers[0]["text"] != theirs[0]["text"]
        player.leave(other)
        assert other not in player.clients

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
        before = {worker.process.pid for worker in player.workers}
        await asyncio.sleep(0.2)
        player.forget(client)
        while client.busy:
            await asyncio.sleep(0.02)
        assert answers == []

        player.request(client, long, lambda answer: answers.append(answer))
        await asyncio.sleep(0.1)
        player.request(client, job(m=3), lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers[0]["kind"] == "scene"
        answers.clear()
        assert before <= {worker.process.pid for worker in player.workers}  # all have obeyed

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
            '{"side": "a", "ask": 1, "world": "mars", "setting": {}}',
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
        session.receive(json.dumps({**wanted, "have": ["x"]}))
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
        kill_all(player)
        player.request(client, job(), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert "No process could be started" in answers[1]["sentence"]
        assert "ValueError: some secret" in capsys.readouterr().err

    monkeypatch.setattr(work, "warm_up", None)
    monkeypatch.setattr(work, "answer", broken)
    play(act)


def echoes(wanted: dict[str, Any], job: Job) -> str:
    """Take as long as is wanted, and stop when asked to."""
    until = time.monotonic() + wanted["setting"].get("takes", 0.0)
    while time.monotonic() < until:
        if job.stopped() and not wanted["setting"].get("deaf"):
            raise AttnscopeError("stopped.")
        time.sleep(0.01)
    return str(wanted["setting"]["name"])


def wish(name: object, world: str = "lu2021", **setting: Any) -> dict[str, Any]:
    return {"world": world, "setting": {"name": name, **setting}, "have": []}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes be ready at once and answer with a name."""
    monkeypatch.setattr(work, "warm_up", None)
    monkeypatch.setattr(work, "answer", echoes)


@pytest.mark.usefixtures("quick")
def test_turns_are_fair_and_somebody_new_comes_first() -> None:
    order: list[str] = []

    def hear(name: str) -> Callable[[Any], None]:
        return lambda answer: order.append(name)

    async def act(player: Player) -> None:
        greedy = Turns()
        sides = [player.client(greedy), player.client(greedy)]
        modest, late = player.client(), player.client()
        for side in sides:
            player.request(side, wish(id(side), takes=0.05), hear("greedy"))
        player.request(modest, wish("modest", takes=0.05), hear("modest"))
        await heard(order, 1)
        # Two sides of a page do not get two turns before somebody else has had one.
        player.request(late, wish("late"), hear("late"))
        await heard(order, 4)
        assert order.index("modest") < 2
        assert order.index("late") < 3
        assert sorted(order[:2]) == ["greedy", "modest"]

        # However much one asks for, somebody new has the next turn, and then everybody in turn.
        order.clear()
        for client, name in ((modest, "modest"), (sides[0], "greedy")):
            player.request(client, wish(name, takes=0.3), hear(name))
        while not modest.busy:
            await asyncio.sleep(0.01)
        player.request(sides[0], wish("newer"), hear("greedy"))
        player.request(player.client(), wish("new"), hear("new"))
        await heard(order, 3)
        assert order == ["modest", "new", "greedy"]

    play(act)


@pytest.mark.usefixtures("quick")
def test_a_run_that_does_not_stop_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def act(player: Player) -> None:
        client, answers = player.client(), []
        deaf = wish("deaf", takes=60.0, deaf=True)
        player.request(client, deaf, lambda answer: answers.append(answer))
        while not client.busy:
            await asyncio.sleep(0.01)
        before = {worker.process.pid for worker in player.workers}
        # Something of another world is wanted: the other process does it at once.
        player.request(client, wish("x", "li2023"), lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers == [{"kind": "scene", "text": "x"}]
        if player_module.GRACE > 1:
            assert before <= {worker.process.pid for worker in player.workers}
            return
        while before <= {worker.process.pid for worker in player.workers}:
            await asyncio.sleep(0.01)
        assert "did not stop within 0.2 seconds" in capsys.readouterr().err

    play(act)
    monkeypatch.setattr(player_module, "GRACE", 0.2)
    play(act)


@pytest.mark.usefixtures("quick")
def test_a_lost_process_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    async def act(player: Player) -> None:
        client, answers = player.client(), []
        player.request(client, wish("lost", takes=60.0), lambda answer: answers.append(answer))
        while not client.busy or len(player.workers) < 2:
            await asyncio.sleep(0)
        kill_all(player)
        await heard(answers, 1)
        assert answers[0]["kind"] == "sorry"
        assert "Another one has taken its place" in answers[0]["sentence"]
        player.request(client, wish("next"), lambda answer: answers.append(answer))
        await heard(answers, 2)
        assert answers[1]["text"] == "next"
        # One that dies while nobody needs it is replaced without a word.
        kill_all(player)
        player.request(client, wish("again"), lambda answer: answers.append(answer))
        await heard(answers, 3)
        assert answers[2]["text"] == "again"

    play(act)


@pytest.mark.usefixtures("quick")
def test_a_long_run_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player_module, "LONG", 0.2)

    async def act(player: Player) -> None:
        long, short, answers = player.client(), player.client(), []
        player.request(long, wish("long", takes=60.0), lambda answer: answers.append(answer))
        while not long.busy:
            await asyncio.sleep(0.01)
        player.request(short, wish("short"), lambda answer: answers.append(answer))
        await heard(answers, 1)
        assert answers[0]["text"] == "short"
        assert long.busy

    play(act)


@pytest.mark.usefixtures("quick")
def test_who_drags_on_a_busy_machine_sees_curves_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(player_module, "PATIENCE", 0.05)

    async def act(player: Player) -> None:
        client, answers = player.client(), []
        client.patience = 0.05
        for number in range(200):  # Every run takes longer than the patience for the first one.
            player.request(client, wish(number, takes=0.3), lambda answer: answers.append(answer))
            await asyncio.sleep(0.02)
            if answers:
                break
        assert answers
        assert client.patience > 0.3

    play(act)


@pytest.mark.usefixtures("quick")
def test_the_same_run_is_not_done_twice() -> None:
    async def act(player: Player) -> None:
        client, other, answers = player.client(), player.client(), []
        same = wish("same", takes=0.2)
        player.request(client, same, lambda answer: answers.append(1))
        while not client.busy:
            await asyncio.sleep(0.01)
        player.request(client, wish("other"), lambda answer: answers.append(2))
        player.request(client, dict(same), lambda answer: answers.append(3))
        await heard(answers, 1)
        player.request(other, dict(same), lambda answer: answers.append(4))
        await heard(answers, 2)
        assert answers == [3, 4]
        assert player.runs == 1
        player.request(other, wish("more"), lambda answer: answers.append(5))
        await heard(answers, 3)
        assert player.runs == 2

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
