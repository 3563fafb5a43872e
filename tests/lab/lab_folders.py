"""Runs folders to look at, a server to ask, and a browser to look with."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attnscope.claims import Finding
from attnscope.lab.connections import Server
from attnscope.lab.player import Player
from attnscope.lab.safety import Guard
from attnscope.lab.server import Lab, listen

EVIL = "<img src=x onerror='window.hit = 1'><script>window.hit = 2</script>"
REPORT = """<!DOCTYPE html>
<html lang="en">
<head>
<title>report</title>
</head>
<body>
<main id="content">
<figure class="card" id="figure-fig2-sen">
<h3>Score and norm grow along one curve</h3>
<figcaption>The norm of topic words.</figcaption>
</figure>
<figure class="card" id="figure-accuracy">
<h3>Accuracy over training</h3>
<figcaption>Sentences that are classified rightly.</figcaption>
</figure>
</main>
</body>
</html>
"""


def write_run(
    root: Path,
    name: str,
    *,
    study: str = "lu2021.sen",
    spec: dict[str, Any] | None = None,
    status: str = "finished: all 2 runs are complete",
    created: str = "2026-11-16T08:00:00+00:00",
    findings: tuple[Finding, ...] = (),
    report: str | None = REPORT,
    **more: Any,
) -> Path:
    """Write what a run says about itself, and no trajectory."""
    folder = root / name
    folder.mkdir(parents=True)
    runs = [{"case": "FC", "seed": seed} for seed in range(2)]
    manifest = {
        "format": 1,
        "attnscope": "0.1.0",
        "study": study,
        "spec": spec or {},
        "runs": runs,
        "created": created,
        "status": status,
        **more,
    }
    (folder / "run.json").write_text(json.dumps(manifest, indent=1))
    if findings:
        text = json.dumps([asdict(each) for each in findings], indent=1)
        (folder / "findings.json").write_text(text)
    if report is not None:
        (folder / "report.html").write_text(report)
    return folder


class NoPlayer(Player):
    """Takes the place of the processes that do runs: every run is its setting."""

    def request(self, client: Any, wanted: dict[str, Any], on_answer: Any) -> None:
        on_answer({"kind": "scene", "text": json.dumps(wanted)})


@contextmanager
def served(
    root: Path,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    tables: tuple[str, ...] = (),
) -> Iterator[tuple[str, int]]:
    """Serve a folder from another thread; yield host and port."""
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    up, ended = threading.Event(), threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        lab = Lab(root, Guard(host, token), NoPlayer(), tables)
        server = Server(lab)
        server.add_socket(listening)
        loops.append(asyncio.get_running_loop())
        stop = asyncio.Event()
        stops.append(stop)
        up.set()
        await stop.wait()
        server.stop()
        await server.close_all_connections()
        lab.renderer.close()
        lab.reader.close()

    stops: list[asyncio.Event] = []

    def work() -> None:
        asyncio.run(serve())
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert up.wait(20)
    try:
        yield "127.0.0.1", port
    finally:
        loops[0].call_soon_threadsafe(stops[0].set)
        thread.join(120)
        assert ended.is_set()


class Answer:
    """What the server said."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.text = status, headers, body.decode("utf-8", "replace")


def ask(
    place: tuple[str, int],
    path: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    body: bytes | None = None,
) -> Answer:
    """Send one request, exactly as written, and return the answer; redirects are not followed."""
    connection = http.client.HTTPConnection(*place, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, dict(response.getheaders()), response.read())
    finally:
        connection.close()
