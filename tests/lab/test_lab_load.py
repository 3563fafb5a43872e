"""A real lab, started where somebody else's files lie, with several people at its sliders."""

from __future__ import annotations

import asyncio
import http.client
from pathlib import Path
from urllib.parse import urlsplit

from lab_folders import write_run

from findings import finding
from torture.lab_load import Load, load, running_lab

TINY = {"m": 2, "dictionary": 20, "dim": 4}
MODULES = (
    "queue",
    "bokeh",
    "tornado",
    "torch",
    "numpy",
    "attnscope",
    "matplotlib",
    "sitecustomize",
)


def test_everybody_has_the_last_answer_and_no_file_of_the_folder_is_run(tmp_path: Path) -> None:
    here, marker = tmp_path / "here", tmp_path / "ran"
    here.mkdir()
    for name in MODULES:
        (here / f"{name}.py").write_text(
            f"open({str(marker)!r}, 'a').write({name!r})\nraise OSError"
        )
    write_run(here / "runs", "good", findings=(finding(),))

    async def whole() -> tuple[Load, int]:
        async with running_lab(here / "runs", settle=0, cwd=here) as (address, lab):
            found = await load(address, lab, 3, 1.5, every=0.1, setting=TINY)
            # The process that draws is the lab's as well.
            return found, await asyncio.to_thread(scene_status, address)

    found, status = asyncio.run(asyncio.wait_for(whole(), 280))
    assert not marker.exists()
    assert status == 200
    assert found.people == len(found.last) == 3
    assert found.wishes > found.people
    assert found.visitor is not None
    assert found.processes == 0  # Nobody's moving on has cost a process.
    assert found.refused == 0


def scene_status(address: str) -> int:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=200)
    try:
        connection.request("GET", "/live/good/scene")
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()
