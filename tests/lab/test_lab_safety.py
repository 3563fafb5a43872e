"""Who may ask the lab, and for what."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attnscope.errors import AttnscopeError
from attnscope.lab.safety import (
    Guard,
    RefusedError,
    confined,
    host_name,
    is_loopback,
    no_way_out,
    opened,
)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:5006", "localhost:5006", "LOCALHOST", "[::1]:5006", "localhost:9999"]
)
def test_loopback_names_are_answered_on_any_port(host: str) -> None:
    Guard("127.0.0.1").check({"Host": host})
    Guard("127.0.0.1").check({"Host": host, "Origin": f"http://{host}"})


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:5006",
        "127.0.0.1.evil.example",
        "localhost.evil.example:5006",
        "192.168.1.7:5006",
        "127.0.0.1@evil.example",
        "evil.example#127.0.0.1",
        "local host",
        "127.0.0.1:port",
        "[::1",
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    with pytest.raises(RefusedError, match=r"is not this server\. Expected localhost or"):
        Guard("127.0.0.1").check({"Host": host})


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "http://127.0.0.1:8080",
        "https://127.0.0.1:5006",
        "http://localhost:5006",
        "file://",
        "",
    ],
)
def test_other_origins_are_refused(origin: str) -> None:
    with pytest.raises(RefusedError, match="comes from a page of"):
        Guard("127.0.0.1").check({"Host": "127.0.0.1:5006", "Origin": origin})


def test_what_a_foreign_page_embeds_is_refused_and_a_link_from_it_is_not() -> None:
    guard, ours = Guard("127.0.0.1"), {"Host": "127.0.0.1:5006"}
    with pytest.raises(RefusedError, match="not of this server"):
        guard.check({**ours, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
    with pytest.raises(RefusedError, match="not of this server"):
        # Another port of this machine is the same site and another origin.
        guard.check({**ours, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"})
    guard.check({**ours, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    guard.check({**ours, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"})


def test_a_server_on_loopback_asks_for_no_token() -> None:
    guard = Guard("127.0.0.1")
    assert guard.token is None
    assert guard.knows(None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "lab.example"])
def test_a_server_elsewhere_asks_for_a_token(host: str) -> None:
    guard, other = Guard(host), Guard(host)
    assert guard.token is not None
    assert len(guard.token) >= 32
    assert guard.token != other.token
    assert guard.knows(guard.token)
    for wrong in (None, "", guard.token[:-1], guard.token + "x", "ü", other.token):
        assert not guard.knows(wrong)


def test_a_server_elsewhere_is_asked_by_address_or_its_own_name() -> None:
    guard = Guard("lab.example")
    for host in ("lab.example:5006", "192.168.1.7:5006", "localhost:5006", "[fe80::1]:5006"):
        guard.check({"Host": host})
    with pytest.raises(RefusedError, match="its name or its address"):
        guard.check({"Host": "evil.example"})


def test_a_token_that_is_given_is_asked_for_on_loopback_too() -> None:
    guard = Guard("127.0.0.1", "sesame")
    assert guard.knows("sesame")
    assert not guard.knows("Sesame")


def test_which_addresses_are_loopback() -> None:
    assert [is_loopback(h) for h in ("localhost", "127.0.0.1", "127.8.8.8", "::1")] == [True] * 4
    assert [is_loopback(h) for h in ("0.0.0.0", "::", "10.0.0.1", "lab", "")] == [False] * 5
    assert host_name("A.B:1") == "a.b"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("secret")
    made = tmp_path / "runs"
    (made / "demo" / "figures").mkdir(parents=True)
    (made / "demo" / "run.json").write_text("{}")
    (made / "demo" / "figures" / "a.png").write_text("a")
    return made


def test_what_lies_inside_is_found(root: Path) -> None:
    assert confined(root, "demo") == root.resolve() / "demo"
    assert confined(root, "demo", "figures", "a.png").read_text() == "a"


@pytest.mark.parametrize(
    "parts",
    [
        ("..",),
        ("demo", "..", "..", "secret"),
        ("demo/../../secret",),
        ("/etc/passwd",),
        ("demo", "/etc/passwd"),
        (".",),
        ("",),
        (".hidden",),
        ("demo\\run.json",),
        ("demo\0",),
    ],
)
def test_names_that_are_no_names_are_refused(root: Path, parts: tuple[str, ...]) -> None:
    with pytest.raises(AttnscopeError, match="is not the name of something"):
        confined(root, *parts)


def test_what_is_not_there_is_a_sentence(root: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"There is no 'demo/b\.png' in the runs folder"):
        confined(root, "demo", "b.png")


def test_links_that_lead_out_are_refused_and_others_are_not(root: Path, tmp_path: Path) -> None:
    (root / "out").symlink_to(tmp_path)
    (root / "demo" / "leak.json").symlink_to(tmp_path / "secret")
    (root / "demo" / "chain").symlink_to(root / "out")
    (root / "again").symlink_to(root / "demo")
    (root / "beside").symlink_to(tmp_path / "runs-other")
    (tmp_path / "runs-other").mkdir()
    for parts in (("out",), ("demo", "leak.json"), ("demo", "chain", "secret"), ("beside",)):
        with pytest.raises(AttnscopeError, match="leads out of the runs folder"):
            confined(root, *parts)
    assert confined(root, "again", "run.json") == root.resolve() / "demo" / "run.json"


def test_a_file_is_opened_only_inside(root: Path, tmp_path: Path) -> None:
    run = root.resolve() / "demo"
    (run / "leak.json").symlink_to(tmp_path / "secret")
    (run / "same.json").symlink_to(run / "run.json")
    with pytest.raises(AttnscopeError, match="leads out"):
        opened(root, run, "leak.json")
    for name in ("run.json", "same.json"):
        with os.fdopen(opened(root, run, name)) as file:
            assert file.read() == "{}"


def test_a_link_deep_in_a_run_is_found_before_it_is_read(root: Path, tmp_path: Path) -> None:
    run = root / "demo"
    no_way_out(root, run)
    (run / "figures" / "b.png").symlink_to(run / "figures" / "a.png")
    no_way_out(root, run)
    (run / "trajectory.zarr").mkdir()
    (run / "trajectory.zarr" / "c").symlink_to(tmp_path)
    with pytest.raises(AttnscopeError, match=r"'trajectory\.zarr/c' in the run 'demo' leads out"):
        no_way_out(root, run)
