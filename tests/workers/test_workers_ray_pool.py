"""A pool on a cluster: what is lost is handed out again, what breaks is said, nothing else is lost.

Ray itself is a stand-in here, so that nodes die when the test says; real nodes die in
``tests/experiment/test_crew.py``.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from attnscope.errors import AttnscopeError
from attnscope.workers import ray_pool
from attnscope.workers.cluster import Cluster, Needs
from attnscope.workers.ray_pool import RayPool
from attnscope.workers.seat import Code, Death, code


class RayError(Exception):
    """A node is gone."""


def job(name: str, kept: int, job: Any) -> None:
    """Stand for a job; the stand-ins below do something else."""


Answer = list[Any] | Exception


class Actor:
    """A seat whose answers follow a script: given a job's arguments, what is said of it."""

    def __init__(self, script: Callable[..., list[Answer]], node: str, said: Code) -> None:
        self.script, self.node, self.code = script, node, said
        self.answers: deque[Answer] = deque([[pickle.dumps(("ready", None))]])
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *args: (self, name, *args, object()))

    def do(self, name: str, *args: Any) -> Any:
        if name == "about":
            return self.code, self.node
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer


class Ray:
    """As much of Ray as the pool uses, in this process."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self, script: Callable[..., list[Answer]], nodes: int = 2) -> None:
        self.script, self.count, self.seats = script, nodes, 0
        self.started: list[tuple[str, tuple[Any, ...]]] = []
        self.code = code()

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 1.0}} for _ in range(self.count)]

    def remote(self, _: type) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=self.seat))

    def seat(self, *_: Any) -> Actor:
        self.seats += 1
        return Actor(self.script, f"node{self.seats % self.count}", self.code)

    def wait(self, refs: list[Any], num_returns: int = 1, timeout: float = 0) -> Any:
        for actor, name, *args in refs:
            if name == "start":
                self.begin(actor, args[0])
        ready = [ref for ref in refs if ref[1] == "about" or ref[0].answers]
        return ready[:num_returns], []

    def begin(self, actor: Actor, order: bytes) -> None:
        _, args = pickle.loads(order)
        self.started.append((actor.node, args))
        actor.answers.extend(actor.script(*args, actor.node))

    def get(self, ref: Any) -> Any:
        actor, name, *args, _ = ref
        return actor.do(name, *args)

    def kill(self, actor: Actor) -> None:
        actor.dead = True


def pool_of(ray: Ray, jobs: list[tuple[Any, ...]], **more: Any) -> RayPool:
    original = Actor.__getattr__

    def reach(self: Actor, name: str) -> Any:
        if name == "start":
            return SimpleNamespace(remote=partial(ray.begin, self))
        if name == "stop":
            return SimpleNamespace(remote=lambda: self.answers.append(said("done", "stopped")))
        return original(self, name)

    Actor.__getattr__ = reach  # type: ignore[method-assign]
    return RayPool(job, jobs, cluster=Cluster(ray), **more)


def said(kind: str, value: Any = None) -> list[Any]:
    return [pickle.dumps((kind, value))]


def heard(pool: RayPool) -> list[tuple[int, str, Any]]:
    messages: list[tuple[int, str, Any]] = []
    try:
        pool.listen(lambda *message: messages.append(message))
    finally:
        pool.stop()
    pool.rest(lambda *message: messages.append(message))
    return messages


def test_jobs_are_shared_and_their_messages_passed_on() -> None:
    ray = Ray(lambda name, kept, node: [said("part", name), said("done", kept)])
    messages = heard(pool_of(ray, [("a", 0), ("b", 1), ("c", 2)]))
    assert sorted(messages) == sorted(
        [(i, "part", n) for i, n in enumerate("abc")] + [(i, "done", i) for i in range(3)]
    )
    assert {node for node, _ in ray.started} == {"node0", "node1"}


def test_a_job_whose_node_is_lost_goes_on_with_what_has_been_kept() -> None:
    kept = {0: 0, 1: 0}

    def script(name: str, start: int, node: str) -> list[Answer]:
        if name == "a" and start < 3:
            return [said("part", start + 1), RayError("the node died")]
        return [said("done", start)]

    ray = Ray(script)
    pool = pool_of(ray, [("a", 0), ("b", 0)], args_now=lambda number, args: (args[0], kept[number]))
    messages = []

    def hear(number: int, kind: str, value: Any) -> None:
        messages.append((number, kind, value))
        if kind == "part":
            kept[number] = value

    with pytest.warns(RuntimeWarning, match="was lost; job 0 goes on elsewhere"):
        pool.listen(hear)
    pool.stop()
    assert [each for each in messages if each[0] == 0] == [
        (0, "part", 1),
        (0, "part", 2),
        (0, "part", 3),
        (0, "done", 3),
    ]
    assert (1, "done", 0) in messages


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said("bug", "Traceback\nValueError: no"), "ValueError: no"),
        ([Death("exit code -9", "")], "exit code -9: the system ended it, as it does when memory"),
        (RayError("killed: the node is Out of Memory"), "its node ran out of memory: expected"),
    ],
)
def test_a_job_that_breaks_on_every_try_is_tried_elsewhere_and_then_said(
    answer: Answer, reason: str
) -> None:
    ray = Ray(lambda name, kept, node: [answer if name == "a" else said("done")])
    pool = pool_of(ray, [("a", 0), ("b", 0), ("c", 0)], title="the run {}".format)
    messages: list[tuple[int, str]] = []
    with pytest.raises(AttnscopeError) as caught:
        pool.listen(lambda number, kind, _: messages.append((number, kind)))
    pool.stop()
    assert str(caught.value).startswith(
        f"the run 0 broke {ray_pool.TRIES} times on the cluster (node0, node1), the last time by: "
        f"{reason}"
    )
    assert "What it had sent is kept: run again with --resume." in str(caught.value)
    assert {(1, "done"), (2, "done")} <= set(messages)
    assert [kind for number, kind in messages if number == 0] in (["lost"], ["bug"])
    assert sum(args[0] == "a" for _, args in ray.started) == ray_pool.TRIES


def test_a_sentence_is_not_tried_again() -> None:
    ray = Ray(lambda name, kept, node: [said("sorry", "no such file")])
    assert heard(pool_of(ray, [("a", 0)])) == [(0, "sorry", "no such file")]


def test_a_node_with_other_code_is_refused() -> None:
    ray = Ray(lambda *_: [said("done")])
    ray.code = replace(code(), attnscope="0.0.9", digest="0badc0de")
    with pytest.raises(AttnscopeError, match=r"node 'node\d' runs attnscope 0.0.9 \(code 0badc0de"):
        heard(pool_of(ray, [("a", 0)]))
    assert not ray.started


def test_a_node_without_attnscope_is_a_sentence() -> None:
    ray = Ray(lambda *_: [RayError("ModuleNotFoundError: No module named 'attnscope'")])
    with pytest.raises(AttnscopeError, match="a node of the cluster does not have attnscope"):
        heard(pool_of(ray, [("a", 0)]))


def test_a_run_that_no_node_can_do_is_refused_at_once() -> None:
    ray = Ray(lambda *_: [said("done")])
    with pytest.raises(AttnscopeError, match=r"a run takes 4 processors and 1 GPUs, and no node"):
        pool_of(ray, [("a", 0)], needs=Needs(4, 1))


@pytest.mark.parametrize("answer", [RayError("Out of Memory"), [Death("exit code 1", "")]])
def test_a_cluster_where_nothing_can_begin_is_a_sentence(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = Ray(lambda *_: [said("done")])
    made = ray.seat

    def seat(*args: Any) -> Actor:
        actor = made(*args)
        actor.answers = deque([answer])
        return actor

    monkeypatch.setattr(ray, "seat", seat)
    pool = pool_of(ray, [("a", 0), ("b", 0)])
    with pytest.raises(AttnscopeError, match="20 processes ended one after the other"):
        pool.listen(lambda *_: None)
    pool.stop()
    assert not ray.started


def test_a_cluster_without_nodes_is_waited_for_and_then_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Ray(lambda *_: [RayError("died")], nodes=2)
    now = [0.0]
    monkeypatch.setattr("attnscope.workers.ray_pool.clock.monotonic", lambda: now[0])
    monkeypatch.setattr(
        "attnscope.workers.ray_pool.clock.sleep", lambda s: now.__setitem__(0, now[0] + 5)
    )
    pool = pool_of(ray, [("a", 0)])
    ray.nodes = lambda: []  # type: ignore[method-assign]
    pool._room = 0
    with pytest.raises(AttnscopeError, match="no node of the cluster has had room"):
        pool.listen(lambda *_: None)
    pool.stop()


def test_whoever_listens_may_give_more_jobs_and_stop() -> None:
    ray = Ray(lambda name, kept, node: [said("part", kept)] + [said("done")] * (kept < 2))
    pool = pool_of(ray, [("a", 0)], stopped=lambda: any(m[2] == 2 for m in messages))
    messages: list[tuple[int, str, Any]] = []

    def hear(number: int, kind: str, value: Any) -> None:
        messages.append((number, kind, value))
        if kind == "done":
            pool.add("more", number + 1)

    pool.listen(hear)
    pool.stop()
    pool.rest(hear)
    assert messages[-2:] == [(2, "part", 2), (2, "done", "stopped")]
