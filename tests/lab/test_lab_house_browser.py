"""Runs, claims, runs over each other and live runs in a real browser."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from lab_folders import EVIL, served, write_run

import attnscope
from attnscope.studies.lu2021.sen import Sen
from attnscope.trajectory import RunFolder, open_run, write_json
from chromium import chromium
from findings import finding

PATIENCE = 120.0
SMALL = Sen(seeds=1, epochs=60, points=7, dictionary=30, train=24, test=8, m=4, dim=5)
EVIL_NAME = EVIL.replace("/", "")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lab") / "runs"
    attnscope.run(SMALL, made / "going", workers=1)
    shutil.copytree(made / "going", made / "other")
    evil = finding(key="evil", sentence=EVIL, source=EVIL)
    write_run(made, EVIL_NAME, study=EVIL, spec={"word": EVIL}, findings=(evil,), report=None)
    report = f"<html><head></head><body><script>document.title = 'ran'</script>{EVIL}</body></html>"
    write_run(made, "reported", spec={"m": 44}, findings=(finding(),), report=report)
    return made


@pytest.fixture(scope="module")
def base(root: Path) -> Iterator[str]:
    with served(root) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile"), patience=PATIENCE) as driver:
        yield driver


def until(browser: Any, script: str) -> Any:
    """Wait until a script returns something true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = browser.execute_script(script)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"in vain: {script}")


def wear(browser: Any, *, dark: bool = False, width: int = 1280) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
    )
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )


def test_runs_are_filtered_ticked_and_laid_over_each_other(browser: Any, base: str) -> None:
    wear(browser)
    browser.get(f"{base}/runs")
    shown = "return [...document.querySelectorAll('tbody tr')].filter((r) => !r.hidden).length"
    assert browser.execute_script(shown) == 4
    assert browser.execute_script("return document.getElementById('compare').disabled")
    browser.find_element("id", "filter").send_keys("lu2021.sen complete")
    assert browser.execute_script(shown) == 3
    assert browser.execute_script("return location.search") == "?q=lu2021.sen+complete"
    box = browser.find_element("id", "filter")
    box.clear()
    box.send_keys("lu2021.sen m = 4")
    assert browser.execute_script(shown) == 2  # the third has m = 44
    for name in ("going", "other"):
        browser.find_element("css selector", f"input[value={name}]").click()
    button = browser.find_element("id", "compare")
    assert button.text == "Draw 2 over each other"
    button.click()
    until(browser, "return location.pathname === '/compare'")
    until(browser, "return document.body.dataset.drawn")
    titles = browser.execute_script(
        "return [...document.querySelectorAll('#figures h3')].map((each) => each.textContent)"
    )
    assert titles[-1] == "What they recorded"
    assert "Score and embedding norm grow along one curve" in titles
    problems = [each for each in browser.get_log("browser") if each["level"] == "SEVERE"]
    assert problems == []


@pytest.mark.parametrize("path", ["/runs", "/claims", "/compare?run=going&run=other"])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_fit_a_phone_and_can_be_read_in_both_themes(
    browser: Any, base: str, path: str, dark: bool
) -> None:
    wear(browser, dark=dark, width=390)
    browser.get(base + path)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= 390
    contrast = browser.execute_script(
        """
        const light = (text) => {
          const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((c) => c / 255)
            .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const under = (node) => {
          for (; node; node = node.parentElement) {
            const color = getComputedStyle(node).backgroundColor;
            if (!/, 0\\)$/.test(color)) return color;
          }
        };
        let least = 99;
        for (const node of document.querySelectorAll("h1, p, td, th, a, .badge, .soft, button")) {
          if (!node.textContent.trim() || node.disabled || !node.getClientRects().length) continue;
          const [a, b] = [light(getComputedStyle(node).color), light(under(node))];
          least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
        }
        return least;
        """
    )
    assert contrast >= 4.5


def test_every_control_has_a_name_and_the_skip_link_works(browser: Any, base: str) -> None:
    wear(browser)
    for path in ("/runs", "/claims", "/live/going", "/compare?run=going"):
        browser.get(base + path)
        nameless = browser.execute_script(
            """
            return [...document.querySelectorAll("button, input, select, a, summary")].filter((n) =>
              !(n.getAttribute("aria-label") || n.textContent.trim() || n.labels?.length)).length
            """
        )
        assert nameless == 0
        assert browser.execute_script("return document.documentElement.lang") == "en"
        assert browser.execute_script("return document.querySelectorAll('h1').length") == 1
        assert browser.execute_script("return document.querySelector('.skip').hash") == "#content"


def test_the_theme_is_kept_and_reports_wear_it(browser: Any, base: str) -> None:
    wear(browser)
    browser.get(f"{base}/runs")
    paper = "return getComputedStyle(document.body).backgroundColor"
    assert browser.execute_script(paper) == "rgb(246, 247, 249)"
    button = browser.find_element("id", "theme")
    button.click()
    button.click()
    assert browser.execute_script(paper) == "rgb(20, 23, 26)"
    assert "dark" in button.get_attribute("aria-label")
    browser.get(f"{base}/claims")
    assert browser.execute_script(paper) == "rgb(20, 23, 26)"
    browser.get(f"{base}/runs/reported/")
    assert "color-scheme: dark" in browser.page_source
    browser.get(f"{base}/runs")
    browser.find_element("id", "theme").click()
    assert browser.execute_script(paper) == "rgb(246, 247, 249)"


def test_words_of_runs_are_never_markup(browser: Any, base: str) -> None:
    wear(browser)
    name = json.dumps(EVIL_NAME)
    browser.get(f"{base}/runs")
    for path in ("/runs", "/claims", f"/live/' + encodeURIComponent({name}) + '"):
        browser.execute_script(f"location.href = '{path}'")
        until(browser, "return document.readyState === 'complete' && document.querySelector('h1')")
        assert browser.execute_script("return window.hit") is None
        assert "window.hit" in browser.execute_script("return document.body.textContent")


def test_a_report_runs_in_an_origin_of_its_own(browser: Any, base: str) -> None:
    wear(browser)
    browser.get(f"{base}/runs/reported/")
    until(browser, "return document.title === 'ran'")
    assert browser.execute_script("return origin") == "null"
    refused = browser.execute_async_script(
        "const done = arguments[0]; fetch('/runs').then(() => done(false), () => done(true))"
    )
    assert refused


def test_a_run_is_drawn_as_it_goes_without_losing_what_one_looks_at(
    browser: Any, base: str, root: Path
) -> None:
    wear(browser)
    folder = RunFolder(root / "going")
    whole = open_run(folder.path)["observables/loss"].to_numpy().copy()
    stored: Any = zarr.open_group(folder.store, mode="r+")["observables/loss"]
    manifest = folder.manifest()
    ends = [folder.state(index) for index in range(4)]

    def tell(points: int) -> None:
        """Let the last of the four runs have come to as many points."""
        values = whole[3].copy()
        values[points:] = np.nan
        stored[3] = values
        state = {"outcome": "running", "recorded": {"step": points}}
        # As a run does it: whole or not at all, for the page may read at any moment.
        write_json(folder.state_path(3), state)

    write_json(folder.manifest_path, {**manifest, "status": "not begun"})
    tell(3)
    browser.get(f"{base}/live/going")
    until(browser, "return document.body.dataset.drawn")
    lines = """
        const view = [...Bokeh.index].find((each) =>
          document.getElementById('plot-so-far').contains(each.el));
        const plots = [];
        (function walk(model) {
          if (model.type === 'Figure') plots.push(model);
          for (const child of model.children ?? []) walk(child);
        })(view.model);
        const plot = plots.find((each) => each.title.text.text === 'loss');
    """
    last = "return [...plot.renderers.at(-1).data_source.data.y]"
    np.testing.assert_allclose(browser.execute_script(lines + last), whole[3, :3], rtol=1e-6)
    assert browser.find_element("id", "condition").text == "still going"
    zoom = "plot.x_range.setv({start: 5, end: 25}); plot.x_range.have_updated_interactively = true;"
    browser.execute_script(f"{lines} window.kept = view; {zoom}")

    tell(6)
    until(browser, f"{lines} return plot.renderers.at(-1).data_source.data.y.length === 6")
    np.testing.assert_allclose(browser.execute_script(lines + last), whole[3, :6], rtol=1e-6)
    assert browser.execute_script(lines + "return view === window.kept")
    shown = browser.execute_script(lines + "return [plot.x_range.start, plot.x_range.end]")
    assert shown == [5, 25]

    stored[3] = whole[3]
    write_json(folder.state_path(3), ends[3])
    write_json(folder.manifest_path, manifest)
    until(browser, "return document.getElementById('condition').textContent === 'not going'")
    until(browser, "return !!document.getElementById('figure-fig2-sen')")
    assert "finished: all 4 runs are complete" in browser.find_element("id", "status").text
    claims = sum(len(claim.expanded()) for claim in SMALL.claims())
    assert len(browser.find_elements("css selector", "#verdicts li")) == claims


def test_what_cannot_be_drawn_is_a_sentence_on_the_page(browser: Any, base: str) -> None:
    wear(browser)
    browser.get(f"{base}/live/reported")
    until(browser, "return document.getElementById('status').textContent.includes('is gone')")
    assert "Traceback" not in browser.page_source
