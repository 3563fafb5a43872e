"""The first screen of a watched run: exact data, real pixels, nothing foreign."""

from __future__ import annotations

import base64
import json
import re
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.claims.diagnosis import Diagnosis
from attnscope.errors import AttnscopeError
from attnscope.report import Dots, Figure, Line, Page, Panel, Rule, Table, publish, style
from attnscope.report.attention_maps import AttentionMaps, is_causal, levels_of
from attnscope.report.html_curves import curves
from attnscope.report.overview import Event, Overview, ReadingMap, uneven
from chromium import chromium

EVIL = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"
STEPS = np.array([0, 10, 20, 40])
VALUES = np.array([[1.0, 0.8, 0.5, 0.1], [1.0, np.nan, 0.9, 0.9], [0.2, 0.2, 0.2, 0.2]])


def reading(name: str = "relative_entropy", **changes: Any) -> ReadingMap:
    groups, rows = (("layer 0", 2), (EVIL, 1)), ("head 0", "head 1", "head 0")
    return replace(ReadingMap(name, EVIL, "heads", groups, rows, STEPS, VALUES.copy()), **changes)


def overview(**changes: Any) -> Overview:
    loss = Line(np.arange(1.0, 41.0), np.linspace(4.0, 1.0, 40), "loss")
    events = (
        Event(20, EVIL, "fault", "diagnosis-one"),
        Event(10, "attention begins in layer 0"),
    )
    return replace(Overview((loss,), events, (reading(), reading("gradient", log=True))), **changes)


def figure(words: str = "f") -> Figure:
    x = np.arange(5.0)
    marks = (Line(x, x**2, words), Line(x, x, "thin", 1, thin=True), Rule(4.0, "limit"))
    return Figure("f", words, words, (Panel(words, "step", words, marks),))


class Shape(HTMLParser):
    """The tags of a page and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def shape(text: str) -> Shape:
    parser = Shape()
    parser.feed(text)
    return parser


def data_of(text: str, attribute: str) -> Any:
    found = re.search(rf'<script type="application/json" {attribute}="[^"]*">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


def test_what_is_packed_is_what_was_read(tmp_path: Path) -> None:
    text = publish(tmp_path, Page("S", "s", "ok", overview=overview())).read_text()
    data = data_of(text, "data-overview-of")
    first = data["maps"][0]
    raw = np.frombuffer(zlib.decompress(base64.b64decode(first["packed"])), "<f4")
    np.testing.assert_array_equal(raw.reshape(3, 4), VALUES.astype("<f4"))
    assert first["steps"] == STEPS.tolist()
    assert first["span"] == [0.1, 1.0]
    assert [event["step"] for event in data["events"]] == [10, 20]
    assert data["losses"][0]["y"][0] == 4.0


def test_the_colours_of_a_constant_are_in_the_middle() -> None:
    flat = reading(values=np.full((3, 4), 2.0))
    assert flat.span() == (1.5, 2.5)
    assert replace(flat, log=True).span() == (1.0, 4.0)
    assert reading(values=np.where(VALUES > 0.5, VALUES, 0.0), log=True).span() == (0.8, 1.0)


@pytest.mark.parametrize(
    "changes",
    [{"steps": STEPS[:2]}, {"rows": ("a", "b")}, {"groups": (("layer 0", 2),)}],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(AttnscopeError, match=r"ReadingMap 'relative_entropy': values has shape"):
        reading(**changes)


def test_steps_that_double_ask_for_a_logarithmic_axis(tmp_path: Path) -> None:
    assert uneven(np.array([0, 1, 2, 4, 8, 512, 1000, 143_000]))
    assert not uneven(np.arange(0, 1000, 10))
    assert not uneven(np.array([0, 143_000]))
    box = '<input type="checkbox" data-overview="log"'
    for steps, checked in ((STEPS, ""), (np.array([0, 1, 2, 4, 1000]), " checked")):
        values = np.ones((3, len(steps)))
        shown = overview(maps=(reading(steps=steps, values=values),))
        text = publish(tmp_path, Page("S", "s", "ok", overview=shown)).read_text()
        assert f"{box}{checked}>" in text


def test_no_word_becomes_markup(tmp_path: Path) -> None:
    said = Diagnosis("one", EVIL, 20, {EVIL: 1.0}, EVIL, 0)
    page = Page(EVIL, EVIL, EVIL, figures=[figure(EVIL)], diagnoses=[said], overview=overview())
    text = publish(tmp_path, page).read_text()
    assert "<script>window" not in text
    tags = shape(text).tags
    assert not [tag for tag, _ in tags if tag in {"img", "iframe", "object"}]
    assert not [name for _, attrs in tags for name in attrs if name.startswith("on")]
    targets = [attrs["href"] for tag, attrs in tags if tag == "a"]
    assert "#diagnosis-one" in targets
    assert all(re.match(r"#|figures/f\.csv$", target or "") for target in targets)


def test_curves_are_drawn_without_bokeh_below_an_overview(tmp_path: Path) -> None:
    page = Page("S", "s", "ok", figures=[figure()], overview=overview())
    text = publish(tmp_path, page).read_text()
    assert len(text) < 150_000
    assert "data-plot=" not in text
    panel = data_of(text, "data-curves")["panels"][0]
    thin, thick = panel["lines"]
    assert (thin["label"], thin["thin"], thick["thin"]) == ("thin", True, False)
    assert thick["y"] == [0, 1, 4, 9, 16]
    assert thick["color"] == style.color(0)
    assert panel["rules"][0]["at"] == 4.0
    dots = Figure("d", "d", "d", (Panel("", "x", "y", (Dots(np.ones(1), np.ones(1)),)),))
    text = publish(tmp_path, replace(page, figures=[figure(), dots])).read_text()
    assert text.count('<script type="application/json" data-plot') == 1


def test_numbers_that_are_none_are_left_out_of_curves() -> None:
    x = np.arange(3.0)
    y = np.array([1.0, np.nan, -np.inf])
    marks = (Line(x, y, "a"), Line(x, np.array([1.0, 0.0, 2.0]), "b"))
    data = data_of(
        curves(Figure("f", "", "", (Panel("", "x", "y", marks, yscale="log"),))), "data-curves"
    )
    assert [line["y"] for line in data["panels"][0]["lines"]] == [[1, None, None], [1, None, 2]]
    assert data["xs"] == [[0, 1, 2]]


def test_tables_are_folded_if_they_say_so(tmp_path: Path) -> None:
    short = Table("short", "Short", ("a",), ((1,),))
    long = Table("long", "Long", ("a",), tuple((n,) for n in range(20)), folded=True)
    text = publish(
        tmp_path, Page("S", "s", "ok", tables=[short, long], overview=overview())
    ).read_text()
    tags = [(tag, attrs.get("id")) for tag, attrs in shape(text).tags]
    assert ("div", "table-short") in tags
    assert ("details", "table-long") in tags


def test_causal_attention_is_known_by_what_is_above_the_diagonal() -> None:
    past = np.tril(np.ones((2, 4, 4)))
    assert is_causal(past)
    assert is_causal(np.where(past > 0, past, np.nan))
    assert not is_causal(np.ones((2, 4, 4)))
    assert not is_causal(past[:, :2])
    late = past.copy()
    late[1, 0, 3] = 1e-6
    assert not is_causal(late)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path / "profile") as driver:
        yield driver


def opened(browser: Any, path: Path) -> None:
    browser.get(path.as_uri())
    browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        (function wait() {
          const canvas = document.querySelector(".overview canvas");
          if (canvas.dataset.reading && canvas.overview && canvas.overview.size.tall) done();
          else setTimeout(wait, 50);
        })();
        """
    )


def color_at(browser: Any, step: float, row: int) -> list[int]:
    """The colour of the map at a step, in the middle of a row."""
    return browser.execute_async_script(
        """
        const [step, row, done] = arguments;
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const canvas = document.querySelector(".overview canvas");
          const {x, size} = canvas.overview, ratio = canvas.width / canvas.clientWidth;
          const pixel = canvas.getContext("2d").getImageData(
            ratio * x.at(step), ratio * (size.top + (row + 0.5) * size.each), 1, 1);
          done([...pixel.data].slice(0, 3));
        }));
        """,
        step,
        row,
    )


def maps() -> AttentionMaps:
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(4, 1, 2, 3))
    words = ("a", "b", "c", "d")
    return AttentionMaps(
        "layer-0", "Layer 0", (0, 10, 20, 40), levels_of(weights), (words[1:],), (words,),
        first_query=1,
    )  # fmt: skip


def test_a_browser_reads_the_overview(browser: Any, tmp_path: Path) -> None:
    said = Diagnosis("one", EVIL, 20, {EVIL: 1.0}, EVIL, 7)
    page = Page(
        "S", "s", "ok", figures=[figure(EVIL)], diagnoses=[said], overview=overview(), maps=[maps()]
    )  # fmt: skip
    opened(browser, publish(tmp_path / "out", page))
    ramp = [tuple(int(c[at : at + 2], 16) for at in (1, 3, 5)) for c in style.ramp(False, 64)]
    assert tuple(color_at(browser, 2, 0)) == ramp[-1]
    assert tuple(color_at(browser, 38, 0)) == ramp[0]
    assert tuple(color_at(browser, 12, 1)) == (0, 0, 0)  # transparent: there is no number
    canvas = browser.find_element("css selector", ".overview canvas")
    told = browser.find_element("css selector", "#overview-read")
    for key in ("\ue012", "\ue012", "\ue015"):  # left, left, down
        canvas.send_keys(key)
    assert told.text.startswith("Step 20: loss 2.538; layer 0, head 1: relative entropy 0.9")
    assert EVIL in told.text  # what began at this step
    canvas.send_keys("\ue007")  # Enter opens the attention of that head at that step
    assert browser.find_element("css selector", '[data-map="said"]').text == "20"
    assert browser.execute_script("return document.querySelector('[data-map=head]').value") == "1"
    read = browser.find_element("css selector", "#maps-layer-0-read").text
    assert re.match(r"Step 20, head 1: from [123] “[bcd]” to [0-3] “[abcd]” 0\.\d+", read)

    browser.find_element("css selector", "[data-overview=reading]").send_keys("gradient")
    deadline = time.monotonic() + 20  # the map is unpacked in the background
    while canvas.get_attribute("data-reading") != "gradient" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert canvas.get_attribute("data-reading") == "gradient"
    browser.find_element("css selector", "[data-overview=log]").click()
    assert browser.execute_script(
        "return document.querySelector('.overview canvas').overview.x.kind"
    ) in {"linear", "steps"}

    # A folded figure is drawn when it is opened, and its legend hides a line.
    browser.execute_script("document.querySelector('#figure-f').open = true")
    ink = """
        const done = arguments[arguments.length - 1];
        requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => {
          const canvas = document.querySelector("#figure-f canvas");
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let blue = 0;
          for (let i = 0; i < data.length; i += 4)
            if (data[i] === 0 && data[i + 1] === 0x72 && data[i + 2] === 0xB2) blue += 1;
          done(blue);
        })));
    """
    assert browser.execute_async_script(ink) > 50
    browser.find_element("css selector", "#figure-f .legend button").click()
    assert browser.execute_async_script(ink) == 0

    assert browser.execute_script("return window.hit === undefined")
    assert browser.execute_script(
        "return document.scrollingElement.scrollWidth <= window.innerWidth"
    )
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    loud = [e["message"] for e in browser.get_log("browser") if e["level"] in {"SEVERE", "WARNING"}]
    assert [message for message in loud if "getImageData" not in message] == []


def test_the_first_screen_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    said = Diagnosis("one", "A sentence of some length about layer 3.", 20, {"loss": 1.0}, "a", 7)
    page = Page("S" * 60, "s", "ok", figures=[figure()], diagnoses=[said], overview=overview())
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened(browser, publish(tmp_path / "out", page))
    assert browser.execute_script("return document.scrollingElement.scrollWidth") == 390
    tops = browser.execute_script(
        "return ['.overview', '.beside'].map((n) => document.querySelector(n)"
        ".getBoundingClientRect().top)"
    )
    assert tops[0] < 300 < tops[1]
