"""Jobs side by side on a Ray cluster: a pool like :class:`attnscope.workers.Pool`.

Messages come back to whoever listens, who is the only one that writes. A node may die at any time:
its job is handed out again, with whatever whoever listens has kept of it by then.
"""

from __future__ import annotations

import contextlib
import pickle
import time as clock
import warnings
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.workers.cluster import ONE, Cluster, Needs
from attnscope.workers.pickling import installed_path
from attnscope.workers.process import BY_SYSTEM, KILLED, LOST, JobFailed, order_of
from attnscope.workers.seat import Death, Seat, code, environment

PATIENCE = 20.0
"""Seconds that a job may take to stop when it is asked to."""
LISTEN = 10.0
"""Seconds that a seat holds back its answer while there is nothing to say."""
TRIES = 3
"""How often a job may break before it is given up."""
LOSSES = 100
"""How often the node of a job may be lost: that is not the job's fault."""
FALSE_STARTS = 20
"""Processes on nodes that may end one after the other before they had a job."""
NOBODY = 60.0
"""Seconds that a cluster may be without a node for a job."""
MEMORY = "its node ran out of memory: expected fewer runs side by side, by more --memory a run"
"""What is said of a job that Ray ended for the memory of its node."""

Hear = Callable[[int, str, Any], None]


@dataclass(eq=False)
class _Hand:
    """A seat on some node, seen from here, and the answer that is awaited from it."""

    actor: Any
    awaited: Any
    node: str = ""
    ready: bool = False
    number: int | None = None


class RayPool:
    """Worker processes on the nodes of a cluster that take jobs from a common queue.

    Args:
        function: is called as ``function(*args, job)`` on a node.
        jobs: the arguments of each.
        workers: how many side by side; as many as there is room for unless given.
        cluster: where.
        needs: what a job takes of its node.
        args_now: returns the arguments of a job at the moment it is handed out, given its number
            and those it had; so that one whose node was lost goes on and does not begin anew.
        title: what a job is called, given its number.
        stopped: whether to listen no longer. It is asked between two messages, so that one that is
            being written down is not left half-written.
    """

    def __init__(
        self,
        function: Callable[..., object],
        jobs: Iterable[tuple[Any, ...]],
        workers: int | None = None,
        *,
        cluster: Cluster,
        needs: Needs = ONE,
        args_now: Callable[[int, tuple[Any, ...]], tuple[Any, ...]] = lambda _, args: args,
        title: Callable[[int], str] = "job {}".format,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        cluster.check(needs)
        self._function, self._args_now, self._title = function, args_now, title
        self._workers, self._cluster, self._needs = workers, cluster, needs
        self._stopped = stopped
        self._path = installed_path()
        self._jobs: list[tuple[Any, ...]] = []
        self._pending: deque[int] = deque()
        self._left = 0
        for args in jobs:
            self.add(*args)
        self._hands: list[_Hand] = []
        self._broke: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._avoid: defaultdict[int, set[str]] = defaultdict(set)
        self._failures: list[Exception] = []
        self._late: list[tuple[int, str, Any]] = []
        self._looked = self._seen = clock.monotonic()
        self._room = cluster.room(needs)
        self._stopping, self._false_starts = False, 0
        self._seat = cluster.ray.remote(Seat).options(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus or None,
            memory=needs.bytes or None,
            max_concurrency=4,
            max_restarts=0,
        )

    def add(self, *args: Any) -> int:
        """Give another job, before the last one has been heard of; return its place in the row."""
        self._jobs.append(args)
        self._pending.append(len(self._jobs) - 1)
        self._left += 1
        return len(self._jobs) - 1

    def listen(self, hear: Hear) -> None:
        """Hand out jobs and pass on messages until all jobs are done, or somebody asks to stop.

        Args:
            hear: is called with the place of a job in ``jobs``, and with the kind and the value of
                a message: any number of ``"part"``, then ``"done"``, ``"sorry"``, ``"bug"``, or
                ``"lost"`` with the reason if the job took its process with it on every try.

        Raises:
            AttnscopeError: a node runs other code; the cluster is gone; or a job broke on every
                try, after the other jobs are done.
        """
        while self._left and not self._stopping and not self._stopped():
            self._take_seats()
            self._hand_out()
            self._wait(hear, 1.0)
        if self._failures:
            raise self._failures[0]

    def rest(self, hear: Hear) -> None:
        """Pass on what was said while the jobs were being stopped, such as a checkpoint."""
        while self._late:
            hear(*self._late.pop(0))

    def stop(self) -> None:
        """Ask the jobs under way to stop, wait until they have, and leave the nodes."""
        self._stopping = True
        end = clock.monotonic() + PATIENCE
        # A cluster that is gone has nothing to stop.
        with contextlib.suppress(AttnscopeError, self._cluster.ray.exceptions.RayError):
            for hand in self._under_way():
                hand.actor.stop.remote()
            while self._under_way() and clock.monotonic() < end:
                self._wait(lambda *message: self._late.append(message), 0.2)
        for hand in self._hands:
            self._dismiss(hand)
        self._hands = []

    def _under_way(self) -> list[_Hand]:
        return [hand for hand in self._hands if hand.number is not None]

    def _take_seats(self) -> None:
        """Ask for as many seats as there is room for, and jobs; nodes may come and go."""
        now = clock.monotonic()
        if now - self._looked > 2.0:
            self._looked, self._room = now, self._cluster.room(self._needs)
        if self._room or any(hand.ready for hand in self._hands):
            self._seen = now
        elif now - self._seen > NOBODY:
            raise AttnscopeError(
                f"no node of the cluster has had room for a run of {self._needs} for "
                f"{NOBODY:.0f} seconds. What was recorded is kept: run again with --resume when "
                "there are nodes."
            )
        most = self._room if self._workers is None else min(self._workers, self._room)
        while len(self._hands) < min(self._left, most):
            actor = self._seat.remote(environment(), self._needs.cpus)
            self._hands.append(_Hand(actor, actor.about.remote()))

    def _hand_out(self) -> None:
        nodes = {hand.node for hand in self._hands if hand.ready}
        for hand in self._hands:
            if not hand.ready or hand.number is not None:
                continue
            number = next((n for n in self._pending if self._is_fair(n, hand.node, nodes)), None)
            if number is None:
                continue
            self._pending.remove(number)
            args = self._args_now(number, self._jobs[number])
            hand.number = number
            hand.actor.start.remote(order_of(self._function, args, self._path))

    def _is_fair(self, number: int, node: str, nodes: set[str]) -> bool:
        """Return whether a job may go to a node: it broke on others first, if there are others."""
        avoided = self._avoid[number]
        return node not in avoided or not nodes - avoided

    def _wait(self, hear: Hear, seconds: float) -> None:
        """Pass on what has come, after a wait for the first of it."""
        ray = self._cluster.ray
        if not self._hands:
            clock.sleep(seconds)
            return
        hands = {hand.awaited: hand for hand in self._hands}
        try:
            came, _ = ray.wait(list(hands), timeout=seconds)
            if came:
                came, _ = ray.wait(list(hands), num_returns=len(hands), timeout=0)
        except (ConnectionError, ray.exceptions.RayError) as error:
            raise AttnscopeError(
                f"the cluster is gone ({' '.join(str(error).split())[:200]}). What was recorded is "
                "kept: run again with --resume."
            ) from error
        for each in came:
            self._take(hands[each], hear)

    def _take(self, hand: _Hand, hear: Hear) -> None:
        """Take one answer of a seat."""
        ray = self._cluster.ray
        try:
            answer = ray.get(hand.awaited)
        except ray.exceptions.RayError as error:
            self._check_installed(error)
            memory = "out of memory" in str(error).lower() or "OOM" in str(error)
            self._lose(hand, MEMORY if memory else None, "", hear)
            return
        if not hand.node:
            theirs, hand.node = answer
            if theirs != code():
                raise AttnscopeError(
                    f"node '{hand.node}' runs {theirs}, and this computer {code()}: expected the "
                    "same on all nodes. Nothing was lost: install it there and run again."
                )
            answer = []
        # Asked for at once, so that the seat can answer while this answer is written down.
        hand.awaited = hand.actor.hear.remote(LISTEN)
        for message in answer:
            if isinstance(message, Death):
                self._lose(hand, message.reason, message.printed, hear)
                return
            kind, value = pickle.loads(message)
            if kind == "ready":
                hand.ready, self._false_starts = True, 0
                continue
            assert hand.number is not None
            number = hand.number
            if kind != "part":
                hand.number = None
            if kind == "bug" and self._try_again(number, hand.node):
                continue
            self._left -= kind != "part"
            if kind == "bug":
                self._failures.append(self._given_up(number, value.splitlines()[-1], value))
            hear(number, kind, value)

    def _lose(self, hand: _Hand, reason: str | None, printed: str, hear: Hear) -> None:
        """Go on without a seat; without a reason it is its node that was lost."""
        self._hands.remove(hand)
        self._dismiss(hand)
        number = hand.number
        if number is None:
            self._false_starts += not hand.ready
            if self._false_starts >= FALSE_STARTS and not self._stopping:
                raise AttnscopeError(
                    f"{FALSE_STARTS} processes ended one after the other on the cluster before "
                    f"they had begun a run, the last one by: {reason or 'its node was lost'}. What "
                    "was recorded is kept: run again with --resume when there is a better node."
                )
            return
        if reason is None:
            self._lost[number] += 1
            if self._lost[number] <= LOSSES:
                self._pending.appendleft(number)
                if not self._stopping:
                    warnings.warn(
                        f"node '{hand.node}' was lost; {self._title(number)} goes on elsewhere.",
                        RuntimeWarning,
                        stacklevel=2,
                    )
                return
            reason = f"its node was lost {LOSSES} times"
        elif self._try_again(number, hand.node):
            return
        if reason == KILLED:
            reason += BY_SYSTEM
        self._left -= 1
        self._failures.append(self._given_up(number, reason, printed))
        hear(number, LOST, reason)

    def _try_again(self, number: int, node: str) -> bool:
        """Put a job that broke back into the row, elsewhere if there is another node."""
        self._broke[number] += 1
        self._avoid[number].add(node)
        if self._broke[number] >= TRIES or self._stopping:
            return False
        self._pending.appendleft(number)
        return True

    def _given_up(self, number: int, reason: str, details: str) -> JobFailed:
        where = ", ".join(sorted(self._avoid[number])) or "a node"
        return JobFailed(
            f"{self._title(number)} broke {max(1, self._broke[number])} times on the cluster "
            f"({where}), the last time by: {reason}. What it had sent is kept: run again with "
            f"--resume.\n{details}".rstrip()
        )

    def _check_installed(self, error: Exception) -> None:
        if "No module named 'attnscope" in str(error):
            raise AttnscopeError(
                f"a node of the cluster does not have attnscope: expected {code()} on all nodes. "
                "Nothing was lost: install it there and run again."
            ) from error

    def _dismiss(self, hand: _Hand) -> None:
        with contextlib.suppress(Exception):  # It is gone, or the cluster is.
            self._cluster.ray.kill(hand.actor)
