"""Joining a cluster: whatever is not there is a sentence."""

from __future__ import annotations

import pytest

from attnscope.errors import AttnscopeError
from attnscope.workers import cluster
from attnscope.workers.cluster import Needs, check_way, joined

pytest.importorskip("ray")


@pytest.mark.parametrize("on", ["", "somewhere", "ray:", "ray://", "http://host:1", "RAY"])
def test_a_place_that_is_none_is_quoted(on: str) -> None:
    with pytest.raises(AttnscopeError, match=f"on = '{on}': expected 'local', 'ray', 'auto' or"):
        check_way(on)


def test_a_cluster_that_is_not_there_is_a_sentence() -> None:
    expected = r"on = 'ray://127.0.0.1:9': no Ray cluster answers there \(.*refused\)"
    with pytest.raises(AttnscopeError, match=expected), joined("ray://127.0.0.1:9"):
        pass


class Busy:
    """A cluster whose server fails to start a process for its first clients."""

    def __init__(self, fails: int, said: str) -> None:
        self.fails, self.said, self.asked = fails, said, 0

    def init(self, **given: object) -> None:
        self.asked += 1
        if self.asked <= self.fails:
            raise ConnectionAbortedError(self.said)


def test_a_server_whose_process_did_not_come_up_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "AGAIN", (0.0, 0.0))
    said = "Initialization failure from server:\nTraceback"
    for fails in (0, 1, 2):
        busy = Busy(fails, said)
        cluster._join(busy, "ray://127.0.0.1:9", {})
        assert busy.asked == fails + 1
    for busy, asked in ((Busy(3, said), 3), (Busy(1, "ray version"), 1), (Busy(1, "refused"), 1)):
        with pytest.raises(ConnectionAbortedError):
            cluster._join(busy, "ray://127.0.0.1:9", {})
        assert busy.asked == asked


def test_a_computer_that_belongs_to_no_cluster_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(AttnscopeError, match="on = 'auto': no Ray cluster answers"), joined("auto"):
        pass


@pytest.mark.parametrize(
    "given",
    [
        {"cpus": 0},
        {"gpus": -1.0},
        {"gpus": float("nan")},
        {"memory": -1.0},
        {"memory": float("nan")},
    ],
)
def test_what_a_run_takes_has_bounds(given: dict[str, float]) -> None:
    with pytest.raises(AttnscopeError, match="expected"):
        Needs(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("needs", "node", "fits"),
    [
        (Needs(), {"CPU": 4.0}, 4),
        (Needs(2), {"CPU": 5.0}, 2),
        (Needs(1, 0.5), {"CPU": 8.0, "GPU": 1.0}, 2),
        (Needs(1, 1), {"CPU": 8.0}, 0),
        (Needs(memory=4), {"CPU": 8.0, "memory": 9e9}, 2),
        (Needs(memory=4), {"CPU": 8.0}, 0),
        (Needs(), {}, 0),
    ],
)
def test_runs_fit_by_what_is_scarce(needs: Needs, node: dict[str, float], fits: int) -> None:
    assert needs.fit(node) == fits
