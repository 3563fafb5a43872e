"""Every address of the lab: what it answers, whom it refuses, and that it lives on."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_folders import EVIL, ask, served, write_run

from attnscope.cli import main
from attnscope.errors import AttnscopeError
from attnscope.lab import pages, server
from findings import finding

Place = tuple[str, int]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lab")
    runs = made / "runs"
    demo = write_run(runs, "demo", findings=(finding(), finding(key=EVIL)))
    for folder, file in (("figures", "a.png"), ("figures", "a.svg"), ("tables", "t.csv")):
        (demo / folder).mkdir(exist_ok=True)
        (demo / folder / file).write_text(f"{file}: content")
    (demo / "figures" / "sly.png").symlink_to(made / "secret")
    (demo / "figures" / "a.html").write_text("<script>1</script>")
    write_run(runs, "bare", report=None)
    (runs / "half").mkdir()
    (runs / "half" / "run.json").write_text('{"format": 1, "stu')
    write_run(runs, "sly", report=None)
    (made / "secret").write_text("secret")
    (runs / "sly" / "report.html").symlink_to(made / "secret")
    (runs / "out").symlink_to(made)
    return runs


@pytest.fixture(scope="module")
def place(root: Path) -> Iterator[Place]:
    with served(root) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/runs", "5 runs in"),
        ("/runs/", "5 runs in"),
        ("/claims", "2 of 2 claims hold"),
        ("/runs/demo/", "Score and norm grow along one curve"),
        ("/runs/bare/", "This run has no report yet"),
        ("/live/demo", 'data-address="/live/demo/scene"'),
        ("/compare?run=demo&run=bare", "2 runs over each other"),
        ("/static/shell.css", "--ink"),
        ("/static/theme.js", "attnscope-theme"),
        ("/static/bokeh.min.js", "Bokeh"),
        ("/runs/demo/figures/a.png", "a.png: content"),
        ("/runs/demo/tables/t.csv", "t.csv: content"),
    ],
)
def test_what_is_there_is_answered(place: Place, path: str, said: str) -> None:
    answer = ask(place, path)
    assert answer.status == 200
    assert said in answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/nothing", "There is no page &#39;/nothing&#39; in the lab"),
        (f"/%3Cscript%3E{'x' * 900}", "%3Cscript%3E"),
        ("/runs/gone/", "There is no &#39;gone&#39; in the runs folder"),
        ("/runs/half/", "damaged or half written"),
        ("/live/half", "damaged or half written"),
        ("/runs/out/", "leads out of the runs folder"),
        ("/runs/sly/", "leads out of the runs folder"),
        ("/runs/demo/figures/sly.png", "leads out of the runs folder"),
        ("/runs/demo/figures/a.html", "is no file of a report"),
        ("/runs/demo/figures/gone.png", "There is no"),
        ("/runs/%2e%2e/", "is not the name of something"),
        ("/runs/..%2f..%2fsecret/", "is not the name of something"),
        ("/runs/demo/figures/..%2frun.json", "is not the name of something"),
        ("/runs/demo/../../secret", "There is no page"),
        ("/runs/demo/run.json", "There is no page"),
        ("/runs/demo/trajectory.zarr/zarr.json", "There is no page"),
        ("/runs/%00/", "is not the name of something"),
        ("/runs/%ff/", "That was not understood"),
        ("/static/..%2fserver.py", "There is no page"),
        ("/static/server.py", "There is no page"),
        ("/compare", "No run was chosen"),
        ("/compare?run=", "is not the name of something"),
        ("/compare?run=%ff", "That was not understood"),
        ("/compare?" + "&".join(f"run={n}" for n in range(9)), "Expected at most 6"),
        ("/compare?run=demo&run=half", "cannot be read"),
        ("/runs/demo/figure", "decides no claim"),
        ("/runs/demo/figure?claim=zzz", "decides no claim"),
    ],
)
def test_nonsense_is_a_sentence_on_a_page(place: Place, path: str, said: str) -> None:
    answer = ask(place, path)
    assert 400 <= answer.status < 500
    assert said in answer.text
    assert "Traceback" not in answer.text
    assert 'role="alert"' in answer.text
    assert "secret" not in answer.text.replace("..%2fsecret", "").replace("../../secret", "")


def test_a_bug_is_a_sentence_and_the_server_lives_on(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a private path /home/me")

    with monkeypatch.context() as patch:
        patch.setattr(pages, "entries", broken)
        answer = ask(place, "/runs")
    assert answer.status == 500
    assert "The lab could not make this page and goes on working" in answer.text
    assert "private" not in answer.text
    assert "ValueError: a private path" in capsys.readouterr().err
    assert ask(place, "/runs").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(place: Place, method: str) -> None:
    answer = ask(place, "/runs", {"Content-Length": "0"}, method)
    assert answer.status in (403, 405)
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    "path", ["/runs", "/static/shell.css", "/live/demo/scene", "/nothing", "/", "/data/scene"]
)
def test_foreign_hosts_and_origins_are_refused_everywhere(place: Place, path: str) -> None:
    for headers in (
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ):
        answer = ask(place, path, headers)
        assert answer.status == 403
        assert "Expected" in answer.text or "not of this server" in answer.text
        assert "<" not in answer.text


def test_a_foreign_page_cannot_open_the_socket(place: Place) -> None:
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    assert ask(place, "/play/socket", {**upgrade, "Origin": "http://evil.example"}).status == 403
    assert ask(place, "/play/socket", {**upgrade, "Host": "evil.example"}).status == 403


def test_pages_run_no_script_but_the_labs_own(place: Place) -> None:
    policy = ask(place, "/runs").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy


def test_a_report_is_sandboxed_and_has_the_labs_bar(place: Place) -> None:
    answer = ask(place, "/runs/demo/")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy  # so that it is default-src, which is nothing
    assert '<a href="/runs">Runs</a>' in answer.text
    assert "color-scheme" not in answer.text
    dark = ask(place, "/runs/demo/", {"Cookie": "attnscope-theme=dark"}).text
    assert "color-scheme: dark; --page: #14171a;" in dark
    light = ask(place, "/runs/demo/", {"Cookie": "attnscope-theme=light"}).text
    assert "color-scheme: light; --page: #f6f7f9;" in light
    odd = ask(place, "/runs/demo/", {"Cookie": 'attnscope-theme="};</style>"'}).text
    assert "color-scheme" not in odd


def test_files_of_a_report_are_what_their_ending_says(place: Place) -> None:
    svg = ask(place, "/runs/demo/figures/a.svg").headers
    assert svg["Content-Type"] == "image/svg+xml"
    assert svg["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert ask(place, "/runs/demo/tables/t.csv").headers["Content-Disposition"] == "attachment"


def test_addresses_lead_on(place: Place) -> None:
    assert ask(place, "/runs/demo").headers["Location"] == "/runs/demo/"
    figure = ask(place, "/runs/demo/figure?claim=sen")
    assert figure.headers["Location"] == "/runs/demo/#figure-fig2-sen"


def test_an_empty_or_missing_folder_is_a_sentence(tmp_path: Path) -> None:
    with served(tmp_path / "runs") as place:
        answer = ask(place, "/runs")
        assert answer.status == 404
        assert "yet. It appears with the first run" in answer.text
        assert "yet. It appears with the first run" in ask(place, "/claims").text
        (tmp_path / "runs").mkdir()
        assert "There is no run in" in ask(place, "/runs").text
        assert "No run has decided a claim yet" in ask(place, "/claims").text


def test_a_folder_that_may_not_be_read_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(AttnscopeError, match=r"cannot be read \(Permission denied\)"):
        pages.entries(tmp_path)


def test_bound_elsewhere_the_lab_asks_for_its_token(root: Path) -> None:
    with served(root, host="0.0.0.0", token="sesame") as place:
        for path in ("/runs", "/static/shell.css", "/runs?token=wrong", "/play/socket"):
            answer = ask(place, path)
            assert answer.status == 403
            assert "asks for its token" in answer.text
        answer = ask(place, "/compare?run=demo&token=sesame&run=bare")
        assert answer.status == 302
        assert answer.headers["Location"] == "/compare?run=demo&run=bare"
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        shown = {"Cookie": cookie.split(";")[0]}
        assert ask(place, "/runs", shown).status == 200
        assert ask(place, "/runs", {"Cookie": "attnscope-token=wrong"}).status == 403
        assert ask(place, "/runs", {**shown, "Host": "evil.example"}).status == 403
        assert ask(place, "//evil.example/?token=sesame").headers["Location"] == "/evil.example/"


def test_a_port_in_use_is_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["lab", str(tmp_path), "--no-open", "--port", str(port)]) == 2
    said = capsys.readouterr().err
    assert f"port {port} is in use, perhaps by another lab. Expected a free one" in said


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70000), ("192.0.2.1", 0), ("no host", 0)])
def test_a_place_that_cannot_be_listened_on_is_a_sentence(host: str, port: int) -> None:
    with pytest.raises(AttnscopeError, match=r"expected a number|cannot listen on"):
        server.listen(host, port)


def test_the_address_to_type() -> None:
    assert server.address("127.0.0.1", 5006, None) == "http://127.0.0.1:5006/"
    assert server.address("::1", 80, None) == "http://[::1]:80/"
    name = socket.gethostname()
    assert server.address("0.0.0.0", 1, "abc") == f"http://{name}:1/?token=abc"
