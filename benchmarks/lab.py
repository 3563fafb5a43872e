"""Measure the lab in headless Chromium: how soon a slider's run is on the screen, and the rest.

``run.py`` has a row of it. Run by itself this prints one table of everything. The lab runs as
``attnscope lab`` in a process of its own. Chromium and its driver are those of the system. Times
are by the clock, so a busy machine shows: the load stands above.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness import Measured, Row, Skip, spread

sys.path.insert(0, str(Path(__file__).parents[1]))  # for tests/torture

MOVES, RUNS = 15, 1_000
HELPERS = """
const bench = document.querySelector(".bench[data-side=a]");
function set(id, index) {
  const input = document.getElementById(id);
  input.value = index;
  input.dispatchEvent(new Event("input", {bubbles: true}));
}
"""
ONE_MOVE = """
const done = arguments[1], begun = performance.now();
bench.addEventListener("attnscope-drawn", (event) => done({
  screen: performance.now() - begun, run: event.detail.seconds, processor: event.detail.processor,
}), {once: true});
set("a-m", arguments[0]);
"""
MANY_MOVES = """
const done = arguments[0], drawn = [], first = Number(bench.dataset.drawn);
let index = 0, last = 0;
bench.addEventListener("attnscope-drawn", (event) => {
  drawn.push(event.detail.ask - first);
  if (event.detail.ask === first + 20) done({drawn, after: performance.now() - last});
});
const timer = setInterval(() => {
  set("a-m", 35 + index);
  last = performance.now();
  if (++index === 20) clearInterval(timer);
}, 100);
"""


def browser(profile: Path) -> Any:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1440,1000"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={profile}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    driver.set_script_timeout(120)
    return driver


def many_runs(folder: Path) -> None:
    """Write runs as they lie on disk, with manifests and findings, without trajectories."""
    spec = {"seeds": 2, "m": 20, "dictionary": 5000}
    for number in range(RUNS):
        run = folder / f"lu2021.sen-{number:08x}"
        run.mkdir(parents=True)
        manifest = {
            "format": 1,
            "attnscope": "0.1.0",
            "study": "lu2021.sen",
            "spec": {**spec, "m": 1 + number % 60},
            "runs": [{"case": "FC", "seed": seed} for seed in range(2)],
            "lr": 0.1,
            "created": "2026-01-01T00:00:00+00:00",
            "status": "finished: all 2 runs are complete",
        }
        (run / "run.json").write_text(json.dumps(manifest, indent=1))


@contextmanager
def lab_in_browser(folder: Path) -> Iterator[tuple[Any, str, float]]:
    """Give a browser, the lab's address, and the seconds until it was ready."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed.")
    command = [sys.executable, "-m", "attnscope.cli", "lab", str(folder / "runs")]
    begun = time.perf_counter()
    lab = subprocess.Popen(
        [*command, "--port", "0", "--no-open"], stdout=subprocess.PIPE, text=True
    )
    assert lab.stdout is not None
    try:
        address = lab.stdout.readline().split()[-1]
        ready = time.perf_counter() - begun
        driver = browser(folder / "profile")
        try:
            yield driver, address, ready
        finally:
            driver.quit()
    finally:
        lab.terminate()
        lab.wait(20)


def moves(driver: Any, count: int) -> list[dict[str, float]]:
    """Move a slider so many times; return what each took."""
    found = []
    for number in range(count):
        found.append(driver.execute_async_script(HELPERS + ONE_MOVE, 10 + number))
        time.sleep(0.3)
    return found


def slider() -> Measured:
    """Compare what a move takes until it is seen with the run that it asks for."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "runs").mkdir()
        with lab_in_browser(Path(place)) as (driver, address, _):
            time.sleep(10)
            driver.get(address)
            wait_drawn(driver)
            found = moves(driver, 8)
    runs, screens = (
        [move["run"] for move in found],
        [move["screen"] / 1000 for move in found],
    )
    ratios = tuple(a / b for a, b in zip(runs, screens, strict=True))
    how = f"by the clock, median of {len(found)} moves at paper size; {spread(ratios)}"
    return Measured(statistics.median(runs), statistics.median(screens), how, ratios)


ROWS = (
    Row("lab.slider", "a slider's move until it is drawn", "the run it asks for",
        "the run", slider),
)  # fmt: skip


def wait_drawn(driver: Any) -> float:
    """Return milliseconds from the request of the page to its first curves."""
    found: float = driver.execute_async_script(
        HELPERS
        + """const done = arguments[0];
        (function look() {
          if (bench.dataset.drawn) done(performance.now()); else setTimeout(look, 5);
        })();"""
    )
    return found


def played(driver: Any, address: str) -> list[tuple[str, str, str]]:
    time.sleep(20)  # both processes have started by then, as they have when a person has read
    driver.get(address)
    curves = wait_drawn(driver)
    paint = driver.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    found = moves(driver, MOVES)
    many = driver.execute_async_script(HELPERS + MANY_MOVES)

    def median(name: str) -> float:
        return statistics.median(move[name] for move in found)

    screens = sorted(move["screen"] / 1000 for move in found)
    spread = f"{screens[0]:.2f} to {screens[-1]:.2f}"
    return [
        (
            f"slider to screen, Lu world at paper size, median of {MOVES} (range)",
            f"{median('screen') / 1000:.2f} s ({spread})",
            "below 1.0 s",
        ),
        ("the run itself, by the clock", f"{median('run'):.2f} s", "below 0.4 s"),
        ("the run itself, of the processor", f"{median('processor'):.2f} s", ""),
        (
            "20 moves within two seconds",
            f"last drawn: {many['drawn'][-1] == 20}, {len(many['drawn'])} of 20 drawn, "
            f"{many['after'] / 1000:.2f} s after the last move",
            "the last is drawn, no queue",
        ),
        ("first paint", f"{paint / 1000:.2f} s", "below 3 s"),
        ("first curves", f"{curves / 1000:.2f} s", ""),
    ]


def listed(address: str) -> tuple[str, str, str]:
    begun = time.perf_counter()
    with urllib.request.urlopen(f"{address}runs") as answer:
        size = len(answer.read())
    seconds = time.perf_counter() - begun
    return (f"{RUNS:,} runs listed", f"{seconds:.2f} s ({size / 1e6:.1f} MB)", "within 2 s")


async def loaded(folder: Path) -> list[tuple[str, str, str]]:
    """Let people drag sliders of a lab of their own."""
    from tests.torture.lab_load import load, running_lab

    rows = []
    async with running_lab(folder / "runs") as (address, lab):
        for people, reach in ((5, "all last moves and the next visitor within 3 s"), (50, "")):
            found = await load(address, lab, people, 15.0, first=100 * people)
            rows.append((f"{people} people drag sliders for 15 s", str(found), reach))
    return rows


def report_sizes(folder: Path) -> list[tuple[str, str, str]]:
    import attnscope
    from attnscope.studies.lu2021 import Sen, TopicWordsRun

    rows = []
    for name, study in (("lu2021.sen", Sen.at("quick")), ("the Lu world", TopicWordsRun())):
        tree = attnscope.run(study, folder / name.replace(" ", "-"), workers=1)
        size = attnscope.write_report(tree).stat().st_size
        rows.append((f"static report of {name}", f"{size / 1e6:.2f} MB", "below 3 MB"))
    return rows


def main() -> int:
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        many_runs(folder / "runs")
        with lab_in_browser(folder) as (driver, address, ready):
            rows = [("`attnscope lab` is ready", f"{ready:.1f} s", "")]
            rows += played(driver, address)
            rows.append(listed(address))
        rows += asyncio.run(loaded(folder))
        rows += report_sizes(folder / "reports")
    table = Table(title=f"The lab, load average {load:.1f} on {os.cpu_count()} cores")
    for head in ("what", "measured", "reach"):
        table.add_column(head)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
