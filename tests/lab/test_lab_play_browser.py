"""The play page in a real browser: sliders are moved, and what is drawn is read back."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.lab.worlds import world
from attnscope.lab.worlds.scene import Scene, scene
from attnscope.report.figure import Line
from chromium import chromium

SERVE = (
    "from attnscope.lab.server import serve\n"
    "serve('runs', port=0, open_browser=False, ready=lambda where: print(where, flush=True))"
)
HELPERS = """
const bench = (side) => document.querySelector(`.bench[data-side=${side}]`);
function column(side, name) {
  const place = bench(side).querySelector(".plot");
  const source = attnscopePlots.sources(place).doc.get_model_by_name(name);
  return {x: Array.from(source.data.x), y: Array.from(source.data.y)};
}
function claims(side) {
  return Object.fromEntries([...bench(side).querySelectorAll(".claim")].map(
    (claim) => [claim.dataset.key, claim.dataset.verdict]));
}
function set(id, index) {
  const input = document.getElementById(id);
  input.value = index;
  input.dispatchEvent(new Event("input", {bubbles: true}));
}
"""
SMALL = "dictionary=50&dim=5&m=3"


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
    profile = tmp_path_factory.mktemp("profile")
    with chromium(profile, window="1440,1000", patience=110) as driver:
        yield driver


def run(browser: Any, script: str) -> Any:
    return browser.execute_script(HELPERS + script)


def wait(browser: Any, script: str) -> Any:
    """Wait until an expression of the page is true, and return it."""
    return browser.execute_async_script(
        HELPERS
        + f"""const done = arguments[arguments.length - 1];
        (function look() {{
          let value = null;
          try {{ value = {script}; }} catch (error) {{ value = null; }}
          if (value) done(value); else setTimeout(look, 30);
        }})();"""
    )


def open_page(browser: Any, address: str, query: str = "", side: str = "a") -> None:
    browser.get_log("browser")
    browser.get(f"{address}?{query}")
    wait(browser, f"bench('{side}').dataset.drawn")


def no_complaints(browser: Any) -> None:
    said = [e["message"] for e in browser.get_log("browser") if e["level"] != "INFO"]
    assert said == []


def by_api(key: str, **setting: Any) -> Scene:
    here = world(key)
    admitted, said = here.admit(setting)
    assert said == []
    return scene(here.spec(admitted))


def line(shown: Scene, panel: int, label: str) -> Line:
    marks = shown.figures[0].panels[panel].marks
    (found,) = [m for m in marks if isinstance(m, Line) and m.label == label and not m.thin]
    return found


def same(drawn: dict[str, list[float]], mark: Line) -> None:
    np.testing.assert_array_equal(drawn["x"], np.float32(mark.x).astype(float))
    np.testing.assert_array_equal(drawn["y"], np.float32(mark.y).astype(float))


def test_a_slider_redraws_what_the_python_api_says(browser: Any, address: str) -> None:
    open_page(browser, address, SMALL)
    before = by_api("lu2021", dictionary=50, dim=5, m=3)
    same(run(browser, "return column('a', 'p0-line-1')"), line(before, 0, "mean topic word"))
    assert run(browser, "return claims('a')") == {f.key: f.verdict for f in before.findings}
    assert run(browser, "return bench('a').querySelector('[role=status]').textContent") == (
        before.outcome
    )
    asked = int(run(browser, "set('a-m', 9); return bench('a').dataset.drawn"))
    wait(browser, f"Number(bench('a').dataset.drawn) > {asked}")
    after = by_api("lu2021", dictionary=50, dim=5, m=10)
    same(run(browser, "return column('a', 'p0-line-1')"), line(after, 0, "mean topic word"))
    same(run(browser, "return column('a', 'p2-line-1')"), line(after, 2, "training loss"))
    code = run(browser, "return bench('a').querySelector('.code pre').textContent")
    assert code == after.python
    label = run(browser, "return document.getElementById('a-m').getAttribute('aria-valuetext')")
    assert label == "10"
    wait(browser, "location.search.includes('m=10')")
    no_complaints(browser)


def test_of_many_moves_the_last_is_drawn_and_no_queue_builds_up(browser: Any, address: str) -> None:
    open_page(browser, address, SMALL)
    drawn = browser.execute_async_script(
        HELPERS
        + """const done = arguments[0], drawn = [];
        const first = Number(bench("a").dataset.drawn);
        bench("a").addEventListener("attnscope-drawn", (event) => {
          drawn.push(event.detail.ask - first);
          if (event.detail.ask === first + 20) done(drawn);
        });
        let index = 0;
        const timer = setInterval(() => {
          set("a-m", 20 + index);
          if (++index === 20) clearInterval(timer);
        }, 50);"""
    )
    assert drawn == sorted(drawn)
    assert drawn[-1] == 20
    last = by_api("lu2021", dictionary=50, dim=5, m=40)
    same(run(browser, "return column('a', 'p0-line-1')"), line(last, 0, "mean topic word"))
    no_complaints(browser)


def test_claims_turn_red_and_green(browser: Any, address: str) -> None:
    open_page(browser, address, "world=snell2021&length=4&types=8&pairs=50&width=500")
    assert run(browser, "return claims('a')")["words"] == "holds"
    run(browser, "set('a-types', 1)")
    wait(browser, "claims('a')['words'] === 'fails'")
    badge = "bench('a').querySelector('[data-key=words] .badge')"
    assert run(browser, f"return {badge}.textContent") == "✗ fails"
    red = run(browser, f"return getComputedStyle({badge}).color")
    run(browser, "set('a-types', 5)")
    wait(browser, "claims('a')['words'] === 'holds'")
    assert run(browser, f"return getComputedStyle({badge}).color") != red
    no_complaints(browser)


def test_attention_is_played_over_time(browser: Any, address: str) -> None:
    open_page(browser, address, SMALL)
    shown = by_api("lu2021", dictionary=50, dim=5, m=3).attention
    place = shown.right[0]
    words = run(
        browser,
        "return [...bench('a').querySelectorAll('.word .name')].map((word) => word.textContent)",
    )
    assert tuple(words) == shown.keys
    weight = f"parseFloat(bench('a').querySelectorAll('.word .weight')[{place}].textContent)"
    end = run(browser, f"return {weight}")
    assert end == pytest.approx(100 * shown.weights[-1, 0, place], abs=0.51)
    run(
        browser,
        "const time = bench('a').querySelector('.attention input'); time.value = 0;"
        "time.dispatchEvent(new Event('input', {bubbles: true}))",
    )
    assert run(browser, f"return {weight}") == pytest.approx(25, abs=0.6)
    run(browser, "bench('a').querySelector('.play').click()")
    wait(browser, f"{weight} > 28")
    run(browser, "bench('a').querySelector('.play').click()")
    rule = run(
        browser,
        "return attnscopePlots.sources(bench('a').querySelector('.plot')).models"
        ".find((model) => /^p1-now/.test(model.name || '')).data.at[0]",
    )
    assert 0 < rule <= 5000
    no_complaints(browser)


def test_two_settings_side_by_side_have_their_own_curves_and_common_axes(
    browser: Any, address: str
) -> None:
    open_page(browser, address, SMALL)
    run(browser, "document.getElementById('compare').click()")
    asked = int(wait(browser, "bench('b').dataset.drawn"))
    run(browser, "set('b-m', 24)")
    wait(browser, f"Number(bench('b').dataset.drawn) > {asked}")
    left, right = (by_api("lu2021", dictionary=50, dim=5, m=m) for m in (3, 25))
    same(run(browser, "return column('a', 'p0-line-1')"), line(left, 0, "mean topic word"))
    same(run(browser, "return column('b', 'p0-line-1')"), line(right, 0, "mean topic word"))
    ends = [
        run(
            browser,
            f"const range = attnscopePlots.sources(bench('{side}').querySelector('.plot'))"
            ".doc.get_model_by_name('p0').y_range; return [range.start, range.end]",
        )
        for side in "ab"
    ]
    assert ends[0] == ends[1]
    wait(browser, "location.search.includes('b.m=25')")
    open_page(browser, browser.current_url.split("?")[0], browser.current_url.split("?")[1], "b")
    same(run(browser, "return column('b', 'p0-line-1')"), line(right, 0, "mean topic word"))
    run(browser, "document.getElementById('compare').click()")
    wait(browser, "!bench('b') && !location.search.includes('b.')")
    no_complaints(browser)


def test_seeds_are_drawn_again_and_a_run_is_stopped(browser: Any, address: str) -> None:
    open_page(browser, address, SMALL)
    before = run(browser, "return column('a', 'p1-line-2').y")
    run(browser, "bench('a').querySelector('.controls .primary').click()")
    wait(browser, "new URLSearchParams(location.search).get('draw') > 0")
    seed = int(run(browser, "return new URLSearchParams(location.search).get('draw')"))
    wait(browser, f"bench('a').querySelector('.timing').textContent.includes('Seed {seed}.')")
    after = by_api("lu2021", dictionary=50, dim=5, m=3, draw=seed)
    same(run(browser, "return column('a', 'p1-line-2')"), line(after, 1, "mean topic word"))
    assert run(browser, "return column('a', 'p1-line-2').y") != before

    open_page(browser, address, "world=song2024&width=32&sequences=15&query_scale=2&epochs=200")
    stop = "[...bench('a').querySelectorAll('button')].find((b) => b.textContent === 'Stop')"
    run(browser, "set('a-query_scale', 6); set('a-until', 5)")
    wait(browser, f"!{stop}.disabled")
    run(browser, f"{stop}.click()")
    said = wait(browser, "bench('a').querySelector('.notes:not([hidden])')?.textContent")
    assert said.startswith("Stopped.")
    assert run(browser, f"return {stop}.disabled")
    no_complaints(browser)


def test_nonsense_in_the_address_is_said_on_the_page(browser: Any, address: str) -> None:
    open_page(browser, address, f"{SMALL}&classifier=<img src=x onerror=alert(1)>&draw=x")
    said = run(browser, "return document.getElementById('notes').textContent")
    assert "classifier = '<img src=x onerror=alert(1)>': expected one of FC, TC, TL." in said
    assert "draw = 'x' is not a number" in said
    run(browser, "set('a-dim', 0); set('a-topics', 8)")
    text = wait(browser, "bench('a').querySelector('.notes:not([hidden])')?.textContent")
    assert "expected 10 dimensions or more" in text
    run(browser, "set('a-dim', 20)")
    wait(browser, "bench('a').querySelector('.notes').hidden")
    no_complaints(browser)


def test_every_control_has_a_name_and_keys(browser: Any, address: str) -> None:
    for key in ("lu2021", "song2024"):
        open_page(browser, address, f"world={key}&{SMALL}" if key == "lu2021" else f"world={key}")
        tree = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        named = {
            node["name"]["value"]
            for node in tree
            if node.get("role", {}).get("value") in ("slider", "combobox")
            and not node.get("ignored")
            and "name" in node
        }
        assert "" not in named
        assert run(
            browser, "return [...document.querySelectorAll('button')].every((b) => b.textContent)"
        )
        wanted = {control.label for control in world(key).controls}
        assert wanted <= named
    from selenium.webdriver.common.keys import Keys

    slider = browser.find_element("id", "a-sequences")
    asked = int(run(browser, "return bench('a').dataset.drawn"))
    slider.send_keys(Keys.ARROW_LEFT)
    wait(browser, f"Number(bench('a').dataset.drawn) > {asked}")
    assert "sequences=5" in wait(
        browser, "location.search.includes('sequences') && location.search"
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read_and_a_phone_needs_no_sideways_scrolling(
    browser: Any, address: str, theme: str, tmp_path: Path
) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": theme}]},
    )
    open_page(browser, address, SMALL)
    paper, ink = run(
        browser,
        "const plot = attnscopePlots.sources(bench('a').querySelector('.plot')).doc"
        ".get_model_by_name('p0');"
        "return [plot.background_fill_color, plot.xaxis ? plot.xaxis.axis_label_text_color"
        " : plot.below[0].axis_label_text_color]",
    )
    value = [
        _brightness(color if isinstance(color, str) else color["value"]) for color in (paper, ink)
    ]
    assert (value[0] > 200 > 100 > value[1]) if theme == "light" else (value[0] < 60 < value[1])
    shot = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {})["data"])
    (tmp_path / f"{theme}.png").write_bytes(shot)
    from matplotlib.image import imread

    pixels = imread(tmp_path / f"{theme}.png")[..., :3]
    assert (pixels.mean() > 0.75) if theme == "light" else (pixels.mean() < 0.35)
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wide = wait(browser, "document.documentElement.scrollWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 390
    no_complaints(browser)


def _brightness(color: str) -> float:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return 0.3 * red + 0.59 * green + 0.11 * blue


def test_the_page_loads_nothing_from_elsewhere(browser: Any, address: str) -> None:
    open_page(browser, address, SMALL)
    names = run(browser, "return performance.getEntriesByType('resource').map((e) => e.name)")
    assert any("bokeh" in name for name in names)
    assert all(name.startswith((address, "data:")) for name in names), json.dumps(names)
