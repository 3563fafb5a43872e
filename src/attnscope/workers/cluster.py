"""A Ray cluster: started here and stopped again, or joined.

Ray is an extra, ``pip install 'attnscope[cluster]'``, and imported when it is first needed. Its
usage statistics and its dashboard stay off.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from attnscope.errors import AttnscopeError

LOCAL, STARTED, FOUND, REMOTE = "local", "ray", "auto", "ray://"
WAYS = "'local', 'ray', 'auto' or 'ray://HOST:PORT'"
PORT = 10001
"""Where a cluster listens to clients unless it was told otherwise."""
GIGABYTE = 1_000_000_000
AGAIN = (1.0, 5.0)
"""Seconds until a server whose process for this client did not come up is asked again."""
KNOCK = 5.0
"""Seconds until a computer that does not answer is not there."""


@dataclass(frozen=True)
class Needs:
    """What one run takes of a node.

    Args:
        cpus: processors, and threads of a run. Only with one is it the same to the last bit as a
            run elsewhere, for sums over several threads come in another order.
        gpus: graphics processors; a fraction shares one.
        memory: gigabytes that are kept free for it; 0 asks for nothing. A node whose memory is
            given away gets no further run, and one that has less gets none.
    """

    cpus: int = 1
    gpus: float = 0.0
    memory: float = 0.0

    def __post_init__(self) -> None:
        if self.cpus < 1:
            raise AttnscopeError(f"cpus = {self.cpus}: expected 1 or more a run.")
        if not 0 <= self.gpus < 1000:
            raise AttnscopeError(f"gpus = {self.gpus}: expected 0 or more a run.")
        if not 0 <= self.memory < 1e6:
            raise AttnscopeError(f"memory = {self.memory}: expected gigabytes a run, 0 or more.")

    @property
    def bytes(self) -> int:
        """Memory in bytes."""
        return int(self.memory * GIGABYTE)

    def fit(self, resources: dict[str, float]) -> int:
        """Return how many runs a node with such resources does side by side."""
        most = resources.get("CPU", 0) // self.cpus
        if self.gpus:
            most = min(most, resources.get("GPU", 0) // self.gpus)
        if self.bytes:
            most = min(most, resources.get("memory", 0) // self.bytes)
        return int(most)

    def __str__(self) -> str:
        parts = [f"{self.cpus} processors"]
        parts += [f"{self.gpus:g} GPUs"] * bool(self.gpus)
        parts += [f"{self.memory:g} GB of memory"] * bool(self.memory)
        return " and ".join(parts)


ONE = Needs()
"""A processor, and no more."""


def check_way(on: str) -> None:
    """Refuse what does not say where runs go.

    Raises:
        AttnscopeError: it does not.
    """
    if on not in (LOCAL, STARTED, FOUND) and not (on.startswith(REMOTE) and urlsplit(on).hostname):
        raise AttnscopeError(f"on = '{on}': expected {WAYS}.")


@contextlib.contextmanager
def joined(on: str, workers: int | None = None, needs: Needs = ONE) -> Iterator[Cluster]:
    """Join a cluster, or start one on this computer; leave or stop it at the end.

    Args:
        on: ``"ray"`` starts one, ``"auto"`` finds the one that this computer belongs to (or that
            ``RAY_ADDRESS`` names), ``"ray://HOST:PORT"`` is one elsewhere.
        workers: runs side by side, for a cluster that is started.
        needs: what one run takes.

    Raises:
        AttnscopeError: Ray is not installed, or there is no such cluster.
    """
    check_way(on)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise AttnscopeError(
            f"on = '{on}' needs Ray, which is not installed: expected "
            "`pip install 'attnscope[cluster]'`. Without --on runs are done on this computer."
        ) from None
    if ray.is_initialized():
        # Somebody's notebook has joined one already, and will go on with it.
        yield Cluster(ray)
        return
    _quiet(ray)
    given: dict[str, Any] = {}
    if on == STARTED:
        cores = os.cpu_count() or 1
        given = {"num_cpus": max(cores, (workers or 0) * needs.cpus), "include_dashboard": False}
    with _handlers_kept():
        try:
            _knock(on)
            _join(ray, on, given)
        except (ConnectionError, RuntimeError, ValueError, OSError, AssertionError) as error:
            reason = " ".join(str(error).split())[:400] or type(error).__name__
            if "version" in reason.lower():
                raise AttnscopeError(
                    f"on = '{on}': the cluster there has other versions ({reason}). Expected the "
                    "same Ray and Python on both sides. Nothing was lost."
                ) from error
            raise AttnscopeError(
                f"on = '{on}': no Ray cluster answers there ({reason}). Expected one, as `ray "
                "start --head` makes it, with the same versions of Ray and Python; or on = 'ray', "
                "which starts one here. Nothing was lost."
            ) from error
        try:
            yield Cluster(ray)
        finally:
            ray.shutdown()


def _join(ray: Any, on: str, given: dict[str, Any]) -> None:
    """Become a driver of a cluster.

    The server of ``ray://`` starts a process for each client. One that does not come up, as when
    the node is busy or a port was just taken, says nothing of the next: it is asked again.
    """
    for wait in (*AGAIN, None):
        try:
            ray.init(
                address="local" if on == STARTED else on,
                logging_level=logging.ERROR,
                log_to_driver=False,
                **given,
            )
            return
        except ConnectionError as error:
            said = str(error).lower()
            if wait is None or "failure from server" not in said or "version" in said:
                raise
            time.sleep(wait)


class Cluster:
    """A cluster that this process has joined."""

    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def nodes(self) -> list[dict[str, float]]:
        """Return the resources of each node that is alive."""
        return [node["Resources"] for node in self.ray.nodes() if node["Alive"]]

    def room(self, needs: Needs) -> int:
        """Return how many runs fit side by side."""
        return sum(map(needs.fit, self.nodes()))

    def check(self, needs: Needs) -> None:
        """Refuse what no node can do.

        Raises:
            AttnscopeError: no node has so much.
        """
        nodes = self.nodes()
        if not any(map(needs.fit, nodes)):
            there = "; ".join(
                f"{each.get('CPU', 0):g} processors, {each.get('GPU', 0):g} GPUs, "
                f"{each.get('memory', 0) / GIGABYTE:.1f} GB"
                for each in nodes
            )
            raise AttnscopeError(
                f"a run takes {needs}, and no node of the cluster has so much (there are "
                f"{len(nodes)}: {there}). Expected fewer --cpus or --gpus, less --memory, or a "
                "larger node."
            )


def _quiet(ray: Any) -> None:
    """Keep Ray from printing among the results; what matters to a person is said here."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    with contextlib.suppress(AttributeError):
        # Pages of a dead node's log go to standard output, and no setting turns that off.
        ray._private.worker.print_to_stdstream = lambda *_, **__: None


def _knock(on: str) -> None:
    """Try to reach an address, for Ray itself would try for minutes.

    Raises:
        OSError: nobody listens there.
    """
    place = os.environ.get("RAY_ADDRESS", "") if on == FOUND else on
    where = urlsplit(place if "://" in place else f"//{place}")
    if on == STARTED or where.hostname is None or (on == FOUND and where.port is None):
        return
    with socket.create_connection((where.hostname, where.port or PORT), KNOCK):
        pass


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Put signal handlers back that Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
