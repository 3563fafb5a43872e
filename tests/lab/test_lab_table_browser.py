"""The page on data in a real browser: paste, say, smooth, train, and what goes wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from lab_folders import EVIL

from chromium import chromium

SERVE = (
    "from attnscope.lab.server import serve\n"
    "serve('runs', port=0, open_browser=False, ready=lambda where: print(where, flush=True))"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        cwd=tmp_path_factory.mktemp("lab"),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.terminate()
    server.wait(20)
    server.stdout.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), window="1280,800", patience=110) as driver:
        yield driver


def wait(browser: Any, script: str) -> Any:
    return browser.execute_async_script(
        f"""const done = arguments[arguments.length - 1];
        (function look() {{
          const value = {script};
          if (value) done(value); else setTimeout(look, 30);
        }})();"""
    )


def paste(browser: Any, table: str) -> None:
    browser.execute_script(
        """delete document.body.dataset.said;
        const box = document.getElementById("box");
        box.value = arguments[0];
        box.dispatchEvent(new Event("input"));
        document.getElementById("ask").requestSubmit();""",
        table,
    )


def test_a_table_is_said_smoothed_trained_and_bad_ones_are_sentences(
    browser: Any, address: str
) -> None:
    browser.get(f"{address}data")
    assert browser.execute_script("return document.getElementById('train').disabled")
    browser.execute_script("document.getElementById('ask').requestSubmit()")
    assert wait(browser, "document.body.dataset.said") == "1"
    assert "Single words suffice" in browser.execute_script(
        "return document.getElementById('verdict').textContent"
    )
    shades = "return [...document.querySelectorAll('.said .word')].map((w) => w.title)"
    before = browser.execute_script(shades)
    browser.execute_script(
        """const slider = document.getElementById("smoothing");
        slider.value = slider.max;
        slider.dispatchEvent(new Event("input"));
        slider.dispatchEvent(new Event("change"));"""
    )
    assert wait(browser, "document.body.dataset.said === '100' && '100'") == "100"
    assert browser.execute_script(shades) != before
    browser.execute_script("document.getElementById('train').click()")
    moments = int(wait(browser, "document.body.dataset.trained"))
    assert moments == 41
    assert "of the texts attention is where it was said" in browser.execute_script(
        "return document.getElementById('outcome').textContent"
    )
    learned = "return [...document.querySelectorAll('.learned .word')].map((w) => w.title)"
    last = browser.execute_script(learned)
    browser.execute_script(
        """const moment = document.getElementById("moment");
        moment.value = 0;
        moment.dispatchEvent(new Event("input"));"""
    )
    first = browser.execute_script(learned)
    assert first != last
    assert browser.execute_script(
        "return attnscopePlots.sources(document.getElementById('plot')).doc.roots().length === 1"
    )

    paste(browser, "label,text\ngood,one,too many\n")
    said = wait(browser, "document.getElementById('trouble').textContent")
    assert "line 2: there are 3 columns where 2 were expected" in said

    rows = [f'{EVIL},"{EVIL} {word}"' for word in ("one", "two", "three") for _ in range(5)]
    rows += [f"plain,other words {n % 3}" for n in range(15)]
    paste(browser, "\n".join(["label,text", *rows]))
    wait(browser, "document.body.dataset.said")
    assert browser.execute_script("return window.hit === undefined")
    assert browser.execute_script("return document.querySelector('#told img') === null")
    complaints = [e["message"] for e in browser.get_log("browser") if e["level"] != "INFO"]
    assert complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits(browser: Any, address: str, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(f"{address}data")
    browser.execute_script("document.getElementById('ask').requestSubmit()")
    wait(browser, "document.body.dataset.said")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    # Every control has a name of its own.
    unnamed = browser.execute_script(
        """return [...document.querySelectorAll("main input, main select, main textarea")]
        .filter((each) => !each.labels.length).map((each) => each.id);"""
    )
    assert unnamed == []
