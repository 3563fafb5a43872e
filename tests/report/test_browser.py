"""The report in a real browser, from ``file://``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.report import Contour, Dots, Figure, Line, Page, Panel, Surface, publish, style
from chromium import chromium
from findings import finding

EVIL = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"

# Finds what Bokeh hides in shadow trees.
HELPERS = """
function inside(node, found = []) {
  for (const child of node.querySelectorAll("*")) {
    found.push(child);
    if (child.shadowRoot) inside(child.shadowRoot, found);
  }
  return found;
}
function plots(view, found = []) {
  if (view.model.type === "Figure") found.push(view);
  for (const child of view.child_views ?? []) plots(child, found);
  return found;
}
function roots() { return [...Bokeh.index].filter((view) => view.model.type === "Column"); }
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path / "profile") as driver:
        yield driver


def open_report(browser: Any, path: Path) -> None:
    """Open the page and wait until Bokeh has drawn everything."""
    browser.get(path.as_uri())
    browser.execute_async_script(
        HELPERS
        + """
        const done = arguments[arguments.length - 1];
        const wanted = document.querySelectorAll(".plot").length;
        (function wait() {
          const views = roots();
          if (views.length === wanted && views.every((view) => view.has_finished())) done();
          else setTimeout(wait, 50);
        })();
        """
    )


def run(browser: Any, script: str) -> Any:
    return browser.execute_script(HELPERS + script)


def inked_canvases(browser: Any) -> list[int]:
    """For each figure, how many of its canvases carry a pixel that is neither clear nor white."""
    return run(
        browser,
        """
        return [...document.querySelectorAll(".plot")].map((plot) =>
          inside(plot).filter((node) => {
            if (node.tagName !== "CANVAS" || !node.width || !node.height) return false;
            const {data} = node.getContext("2d").getImageData(0, 0, node.width, node.height);
            for (let i = 0; i < data.length; i += 4)
              if (data[i + 3] > 0 && data[i] + data[i + 1] + data[i + 2] < 700) return true;
            return false;
          }).length);
        """,
    )


def test_report_draws_and_runs_nothing_foreign(
    browser: Any, every_mark: Figure, awkward: Figure, tmp_path: Path
) -> None:
    x = np.array([0.0, 1.0, 2.0])
    marks = (Dots(x, x, label=EVIL), Line(x, np.full(3, 1.5), "a & b"))
    evil = Figure("evil", EVIL, EVIL, (Panel(EVIL, EVIL, EVIL, marks),))
    page = Page(EVIL, EVIL, EVIL, [finding(sentence=EVIL)], (every_mark, awkward, evil))
    open_report(browser, publish(tmp_path / "out", page))

    assert all(count > 0 for count in inked_canvases(browser))
    panels = run(browser, "return roots().map((root) => plots(root).length)")
    assert panels == [2 + 1, 5 + 1, 1 + 1]  # each with its legend

    tooltip = hover_middle_of_last_figure(browser)
    assert EVIL in tooltip
    assert run(browser, "return window.hit === undefined")
    assert run(browser, "return document.querySelector('h1').textContent") == EVIL
    assert run(browser, "return document.scrollingElement.scrollWidth <= window.innerWidth")
    loaded = run(browser, "return performance.getEntriesByType('resource').map((e) => e.name)")
    assert loaded == []
    messages = browser.get_log("browser")
    assert [entry for entry in messages if entry["level"] in {"SEVERE", "WARNING"}] == []


def hover_middle_of_last_figure(browser: Any, right: float = 0, up: float = 0) -> str:
    """Move the mouse onto the middle of the last panel, or so many pixels off; read the tooltip."""
    x, y = run(
        browser,
        """
        const view = plots(roots().at(-1)).at(-1);
        view.el.scrollIntoView({block: "center"});
        const box = view.el.getBoundingClientRect();
        const frame = view.frame.bbox;
        return [box.x + frame.hcenter, box.y + frame.vcenter];
        """,
    )
    for step in (30, 0):  # arrive from outside, as a hand does
        browser.execute_cdp_cmd(
            "Input.dispatchMouseEvent",
            {"type": "mouseMoved", "x": x + right + step, "y": y - up + step},
        )
    return browser.execute_async_script(
        HELPERS
        + """
        const done = arguments[arguments.length - 1];
        const started = Date.now();
        (function wait() {
          const tips = inside(document).filter((n) => n.classList.contains("bk-tooltip-row-value"));
          if (tips.length || Date.now() - started > 20000)
            done(tips.map((n) => n.textContent).join(" | "));
          else setTimeout(wait, 50);
        })();
        """
    )


def test_the_mouse_reads_values_off_heat_maps(browser: Any, heats: Figure, tmp_path: Path) -> None:
    open_report(browser, publish(tmp_path / "out", Page("S", "s", "ok", figures=[heats])))
    # The middle of the log panel, (10, 10), is a corner of all cells; a little up and right of it
    # is the cell of 1000.
    tooltip = hover_middle_of_last_figure(browser, right=20, up=30)
    assert [part.strip() for part in tooltip.split("|")] == ["10 to 100", "10 to 100", "1000"]
    inked = run(
        browser,
        """
        const view = plots(roots()[0]).at(-1);
        const {left, top, right, bottom} = view.frame.bbox;
        const canvas = view.canvas_view.primary.canvas;
        const scale = canvas.width / view.canvas_view.bbox.width;
        const at = (x, y) => [...canvas.getContext("2d").getImageData(
          scale * (left + x * (right - left)), scale * (top + y * (bottom - top)), 1, 1).data];
        return [at(0.25, 0.9), at(0.25, 0.25), at(0.9, 0.3)];
        """,
    )
    low, empty, high = (tuple(pixel[:3]) for pixel in inked)
    ramp = style.ramp(diverging=False)
    assert low == channels(ramp[0])
    assert high == channels(ramp[-1])
    assert empty == (255, 255, 255)


def channels(color: str) -> tuple[int, ...]:
    return tuple(int(color[at : at + 2], 16) for at in (1, 3, 5))


def test_the_legend_hides_a_label_in_all_panels(
    browser: Any, every_mark: Figure, tmp_path: Path
) -> None:
    path = publish(tmp_path / "out", Page("S", "s", "ok", figures=[every_mark]))
    open_report(browser, path)
    state = """
        const count = {shown: 0, hidden: 0};
        const [, ...panels] = plots(roots()[0]);
        for (const {model} of panels)
          for (const renderer of model.renderers)
            count[renderer.visible ? "shown" : "hidden"] += 1;
        return [count.shown, count.hidden];
    """
    shown, hidden = run(browser, state)
    assert hidden == 0
    run(
        browser,
        """
        const entry = inside(document).find(
          (node) => node.classList.contains("bk-item") && node.textContent === "ours");
        entry.dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}));
        """,
    )
    assert run(browser, state) == [shown - 3, 3]  # line and band on the left, line on the right


def test_the_page_fits_a_phone(browser: Any, every_mark: Figure, tmp_path: Path) -> None:
    page = Page("S", "s", "ok", [finding()] * 2, [every_mark])
    path = publish(tmp_path / "out", page)
    metrics = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    open_report(browser, path)
    assert run(browser, "return document.scrollingElement.scrollWidth") == 400
    tops = run(
        browser,
        "return plots(roots()[0]).slice(1).map((v) => v.el.getBoundingClientRect().top)",
    )
    assert tops[1] > tops[0] + 300  # below each other
    legend = run(
        browser,
        """
        const [strip] = plots(roots()[0]);
        const {bottom} = strip.el.getBoundingClientRect();
        return inside(strip.el.shadowRoot)
          .filter((node) => node.classList.contains("bk-item"))
          .map((node) => node.getBoundingClientRect().bottom <= bottom + 1);
        """,
    )
    assert legend == [True] * 8
    # A finger scrolls past the figures: no tool holds it.
    assert run(browser, "return matchMedia('(pointer: coarse)').matches")
    held = run(
        browser,
        "return plots(roots()[0]).flatMap((v) => v.model.toolbar.tools)"
        ".filter((tool) => tool.type === 'PanTool').map((tool) => tool.active)",
    )
    assert held == [False, False]


def hill(words: str = "Hill") -> Surface:
    """A paraboloid with a path down to its middle."""
    x = np.linspace(-1.0, 1.0, 21)
    down = np.stack([np.linspace(-1, 0, 5), np.zeros(5), np.linspace(1, 0, 5)], axis=1)
    return Surface(words, words, "y", words, x, x, x**2 + x[:, None] ** 2, down, words)


def pixels(browser: Any) -> Any:
    """A number for what the surface looks like, and how many of its pixels are inked."""
    return browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const canvas = document.querySelector(".surface canvas");
          const pen = canvas.getContext("2d");
          const {data} = pen.getImageData(0, 0, canvas.width, canvas.height);
          let sum = 0, inked = 0;
          for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] > 0) inked += 1;
            sum = (sum * 31 + data[i] + 7 * data[i + 1] + 13 * data[i + 3]) % 1000003;
          }
          done([sum, inked]);
        }));
        """
    )


def test_a_surface_turns_by_key_mouse_and_button(browser: Any, tmp_path: Path) -> None:
    figure = Figure("hill", "Hill", "c", (), surfaces=(hill(EVIL),))
    open_report(browser, publish(tmp_path / "out", Page("S", "s", "ok", figures=[figure])))
    first, inked = pixels(browser)
    assert inked > 5000
    canvas = browser.find_element("css selector", ".surface canvas")

    def look() -> str:
        return canvas.get_attribute("data-view")

    start = look()

    canvas.send_keys("\ue012")  # the left arrow
    turned = pixels(browser)[0]
    assert turned != first
    assert look() != start
    canvas.send_keys("\ue014")  # and back
    assert look() == start
    assert pixels(browser)[0] == first

    run(browser, "document.querySelector('.surface').scrollIntoView({block: 'center'})")
    x, y = run(
        browser,
        "const box = document.querySelector('.surface canvas').getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]",
    )
    for kind, dx in (("mousePressed", 0), ("mouseMoved", 60), ("mouseReleased", 60)):
        event = {"type": kind, "x": x + dx, "y": y, "button": "left", "buttons": 1}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event | {"clickCount": 1})
    assert look() != start
    browser.find_element("css selector", "button[data-turn='reset']").click()
    assert look() == start

    words = browser.find_element("css selector", ".surface p:last-of-type").text
    assert "lowest 0 at (0, 0), highest 2 at" in words
    assert canvas.get_attribute("aria-describedby")
    assert run(browser, "return window.hit === undefined")
    assert run(browser, "return document.querySelector('.surface-title').textContent") == EVIL
    assert run(browser, "return document.scrollingElement.scrollWidth <= window.innerWidth")
    assert run(browser, "return performance.getEntriesByType('resource').length") == 0
    messages = browser.get_log("browser")  # but for one about this test's own reading of pixels
    loud = [entry["message"] for entry in messages if entry["level"] in {"SEVERE", "WARNING"}]
    assert [message for message in loud if "getImageData" not in message] == []


def test_a_surface_follows_the_dark_mode(browser: Any, tmp_path: Path) -> None:
    figure = Figure("hill", "Hill", "c", (), surfaces=(hill(),))
    open_report(browser, publish(tmp_path / "out", Page("S", "s", "ok", figures=[figure])))
    light = pixels(browser)[0]
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    # The page hears of it when the browser gets round to it.
    deadline = time.monotonic() + 20
    while pixels(browser)[0] == light:
        assert time.monotonic() < deadline


def test_a_surface_and_contours_share_a_figure(browser: Any, tmp_path: Path) -> None:
    surface = hill()
    lines = Contour(surface.x, surface.y, surface.values, (0.25, 1.0), "height")
    figure = Figure("both", "B", "c", (Panel("p", "x", "y", (lines,)),), surfaces=(surface,))
    open_report(browser, publish(tmp_path / "out", Page("S", "s", "ok", figures=[figure])))
    assert inked_canvases(browser)[0] > 0
    assert pixels(browser)[1] > 5000
    levels = run(
        browser,
        "return plots(roots()[0]).at(-1).model.renderers"
        ".map((r) => [...(r.data_source.data.get?.('value') ?? r.data_source.data.value ?? [])])",
    )
    assert {0.25, 1.0} in [set(level) for level in levels]
