"""Jobs side by side: a common queue, a graceful stop, and a sentence for what breaks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import worker_jobs as jobs

from attnscope.errors import AttnscopeError
from attnscope.workers import Here, Pool
from attnscope.workers.process import BY_SYSTEM, KILLED, JobFailed


def listen(pool: Pool, hear: Callable[[int, str, Any], None]) -> None:
    try:
        pool.listen(hear)
    finally:
        pool.stop()


def test_two_workers_share_a_queue(tmp_path: Path) -> None:
    heard: list[tuple[int, str, Any]] = []
    pool = Pool(jobs.meets, [(tmp_path, number) for number in range(6)], workers=2)
    listen(pool, lambda *message: heard.append(message))
    assert sorted(number for number, _, _ in heard) == list(range(6))
    assert {kind for _, kind, _ in heard} == {"done"}
    assert len({process for _, _, process in heard}) == 2


def test_parts_come_before_the_end_of_their_job() -> None:
    heard: list[tuple[int, str, Any]] = []
    listen(Pool(jobs.counts, [(2,), (1,)], workers=1), lambda *message: heard.append(message))
    assert heard == [
        (0, "part", 0),
        (0, "part", 1),
        (0, "done", "counted"),
        (1, "part", 0),
        (1, "done", "counted"),
    ]


def test_other_jobs_are_done_after_a_bug_and_a_sentence() -> None:
    heard: list[tuple[int, str]] = []
    pool = Pool(jobs.fails, [(1,), (2,), (0,)], workers=1)
    with pytest.raises(AttnscopeError) as caught:
        listen(pool, lambda number, kind, value: heard.append((number, kind)))
    assert heard == [(0, "bug"), (1, "sorry"), (2, "done")]
    message = str(caught.value)
    assert message.startswith(
        "a worker process died (ValueError: a bug). What it had written is kept: run again with "
        "--resume.\nTraceback"
    )


def test_a_killed_worker_is_told_of_and_the_other_goes_on() -> None:
    heard: list[tuple[int, str, Any]] = []
    pool = Pool(jobs.fails, [(3,), (0,), (4,)], workers=2)
    with pytest.raises(AttnscopeError, match=r"a worker process died \(exit code -9: .*--resume"):
        listen(pool, lambda *message: heard.append(message))
    assert sorted(heard) == [(0, "lost", KILLED + BY_SYSTEM), (1, "done", 0), (2, "done", 4)]


def test_a_worker_that_dies_of_its_job_is_replaced() -> None:
    heard: list[tuple[int, str]] = []
    pool = Pool(jobs.fails, [(3,), (3,), (0,), (3,), (0,)], workers=1)
    with pytest.raises(JobFailed, match="as it does when memory runs out"):
        listen(pool, lambda number, kind, _: heard.append((number, kind)))
    assert heard == [(0, "lost"), (1, "lost"), (2, "done"), (3, "lost"), (4, "done")]


def test_a_job_that_cannot_be_sent_is_a_sentence() -> None:
    with pytest.raises(AttnscopeError, match="cannot be sent to a worker process"):
        listen(Pool(jobs.counts, [(threading.Lock(),)], workers=2), lambda *_: None)


def test_stop_lets_jobs_write_their_checkpoints_and_begins_no_other(tmp_path: Path) -> None:
    pool = Pool(jobs.keeps, [(tmp_path, number) for number in range(4)], workers=2)
    under_way = set()

    def interrupt(number: int, kind: str, value: Any) -> None:
        under_way.add(number)
        if len(under_way) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        listen(pool, interrupt)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        str(number): "stopped" for number in under_way
    }
    pool.stop()


def test_a_pool_can_be_stopped_before_its_workers_are_ready(tmp_path: Path) -> None:
    pool = Pool(jobs.keeps, [(tmp_path, 0)], workers=2)
    pool.stop()
    pool.listen(lambda *_: None)


@pytest.mark.parametrize("workers", [0, 2])
def test_whoever_listens_may_give_more_jobs(workers: int) -> None:
    begin = [(1,), (2,)]
    pool = Pool(jobs.counts, begin, workers) if workers else Here(jobs.counts, begin)
    done: list[int] = []

    def hear(number: int, kind: str, value: Any) -> None:
        if kind == "done":
            done.append(number)
            if number < 4:
                pool.add(1)

    try:
        pool.listen(hear)
    finally:
        pool.stop()
    assert sorted(done) == list(range(len(done)))
    assert len(done) == 6


def test_a_killed_worker_does_not_keep_the_other_waiting_for_jobs() -> None:
    pool, done = Pool(jobs.fails, [(3,), (0,)], workers=2), []

    def hear(number: int, kind: str, value: Any) -> None:
        done.append(number)
        if number == 1:
            pool.add(0)

    with pytest.raises(AttnscopeError, match="a worker process died"):
        listen(pool, hear)
    assert sorted(done) == [0, 1, 2]


def test_what_is_said_while_stopping_is_heard_afterwards() -> None:
    pool, heard = Pool(jobs.lingers, [()], workers=1), []

    def interrupt(number: int, kind: str, value: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pool.listen(interrupt)
    pool.stop()
    pool.rest(lambda *message: heard.append(message))
    assert heard == [(0, "part", "stopped"), (0, "done", None)]
