"""Attention maps keep weights within a stated error, fit a page, and run nothing foreign."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.errors import AttnscopeError
from attnscope.report import Page, publish
from attnscope.report import attention_maps as module
from attnscope.report.attention_maps import AttentionMaps, fitted, in_words, levels_of, weights_of
from attnscope.report.html_maps import attention_maps
from chromium import chromium

EVIL = "</script><script>window.hit = 1</script>"
TOKENS = ("the", "<script>", EVIL, "cat & dog")


def course(steps: int = 4, heads: int = 2, length: int = 4, rows: int = 2) -> np.ndarray:
    """Attention that moves from uniform to the first key; head 1 sees the past only."""
    share = np.linspace(0, 1, steps)[:, None, None, None, None]
    first = np.zeros((length, length))
    first[:, 0] = 1
    weights = share * first + (1 - share) / length
    weights = np.broadcast_to(weights, (steps, rows, heads, length, length)).copy()
    if heads > 1:
        past = np.tril(np.ones((length, length)))
        weights[:, :, 1] = past / past.sum(axis=-1, keepdims=True)
    return weights


def plain(weights: np.ndarray, words: tuple[str, ...] = TOKENS) -> AttentionMaps:
    rows = weights.shape[1]
    steps = tuple(100 * n for n in range(len(weights)))
    return AttentionMaps("layer-0", "Layer 0", steps, levels_of(weights), (words,) * rows,
                         (words,) * rows)  # fmt: skip


def numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def test_levels_keep_weights_within_the_stated_error() -> None:
    weights = np.random.default_rng(0).random(10_000)
    assert np.abs(weights_of(levels_of(weights)) - weights).max() < 0.004
    small = np.linspace(0.5, 2, 999) / 512
    assert np.abs(weights_of(levels_of(small)) - small).max() < 0.00025
    assert np.abs(weights_of(levels_of(np.array([1 / 512]))) - 1 / 512)[0] < 0.0002
    assert levels_of(np.array([0.0, 1.0, np.nan])).tolist() == [1, 255, 0]


def test_what_is_packed_is_unpacked_as_it_was() -> None:
    maps = plain(course())
    data = json.loads(_script(attention_maps(maps)))
    cells = np.frombuffer(zlib.decompress(base64.b64decode(data["packed"])), np.uint8)
    assert np.array_equal(cells.reshape(data["shape"]), maps.levels)
    assert data["steps"] == [0, 100, 200, 300]
    assert data["queries"][0] == list(TOKENS)


def test_uniform_attention_has_a_colour_in_the_middle() -> None:
    weights = np.full((1, 1, 1, 16, 16), 1 / 16)
    data = json.loads(_script(attention_maps(plain(weights, numbers(16)))))
    level = plain(weights, numbers(16)).levels.max()
    assert (level - 1) / (data["top"] - 1) == 0.5
    sharp = json.loads(_script(attention_maps(plain(course()))))
    assert sharp["top"] == 255


def test_no_word_becomes_markup() -> None:
    markup = attention_maps(replace(plain(course()), title=EVIL))
    assert EVIL not in markup
    assert markup.count("<script") == 1
    assert "&lt;script&gt;" in markup


def test_pooled_rows_still_add_up_to_one() -> None:
    weights = np.random.default_rng(1).dirichlet(np.ones(7), size=(2, 5))
    pooled = module.pool(weights, 2)
    assert pooled.shape == (2, 3, 4)
    assert np.allclose(pooled.sum(axis=-1), 1, atol=1e-15)
    assert pooled[0, 0, 0] == pytest.approx(weights[0, :2, :2].sum() / 2, abs=1e-15)
    assert pooled[0, 2, 3] == pytest.approx(weights[0, 4, 6], abs=1e-15)


def test_few_maps_are_all_kept() -> None:
    weights = course()
    (maps,) = fitted([(plain(weights), weights)])
    assert (maps.levels.shape, maps.note, maps.pooled) == (weights.shape, "", 1)


def test_steps_then_positions_give_way_to_a_small_file() -> None:
    noise = np.random.default_rng(2)
    weights = noise.dirichlet(np.ones(64), size=(40, 2, 2, 64))
    words = numbers(64)
    for room, steps, size in ((200_000, 20, 1), (60_000, 5, 1), (20_000, 5, 2)):
        (maps,) = fitted([(plain(weights, words), weights)], room)
        assert (len(maps.steps), maps.pooled) == (steps, size)
        assert len(maps.packed()) <= room
        assert (maps.steps[0], maps.steps[-1]) == (0, 3900)
        assert f"{steps} of 40 recorded steps" in maps.note
        assert "1 of 2 rows" in maps.note
        assert len(maps.queries[0]) == maps.levels.shape[3] == 64 // size
    assert "2 × 2 positions in one cell" in maps.note


def test_long_rows_are_cut_at_512() -> None:
    weights = np.full((1, 1, 1, 600, 600), 1 / 600)
    (maps,) = fitted([(plain(weights, numbers(600)), weights)])
    assert maps.levels.shape == (1, 1, 1, 512, 512)
    assert "the first 512 of 600 positions" in maps.note


def test_words_say_where_attention_goes() -> None:
    said = in_words(plain(course()))
    assert "2 heads, 4 queries by 4 keys, 4 steps from 0 to 300, 2 rows" in said
    assert "Head 0, at the end: most from position 0 to 0 (1.00)" in said


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(AttnscopeError, match="expected \\(step, row, head, query, key\\), uint8"):
        plain(course(), ("too", "few"))


def _script(markup: str) -> str:
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', markup, re.DOTALL)
    assert found is not None
    return found.group(1)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path / "profile") as driver:
        yield driver


def open_page(browser: Any, path: Path) -> None:
    """Open the page and wait until the maps are unpacked and drawn."""
    browser.get(path.as_uri())
    browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        (function wait() {
          const all = [...document.querySelectorAll(".maps canvas")];
          if (all.length && all.every((canvas) => canvas.mapPlan)) done();
          else setTimeout(wait, 50);
        })();
        """
    )


def cell(browser: Any, head: int, query: int, key: int) -> list[int]:
    """The colour in the middle of a cell."""
    return browser.execute_async_script(
        """
        const [head, query, key, done] = arguments;
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const canvas = document.querySelector(".maps canvas");
          const {boxes, scale} = canvas.mapPlan;
          const box = boxes.find((b) => b.head === head);
          const ratio = canvas.width / canvas.clientWidth;
          const pixel = canvas.getContext("2d").getImageData(
            ratio * (box.x + (key + 0.3) * scale), ratio * (box.y + (query + 0.3) * scale), 1, 1);
          done([...pixel.data]);
        }));
        """,
        head,
        query,
        key,
    )


def test_a_browser_goes_through_the_steps(browser: Any, tmp_path: Path) -> None:
    page = Page("S", "s", "ok", maps=[plain(course())])
    open_page(browser, publish(tmp_path / "out", page))

    def part(name: str) -> Any:
        return browser.find_element("css selector", f'[data-map="{name}"]')

    def told() -> str:
        return browser.find_element("css selector", ".map-read").text

    # The last step: head 0 looks at the first key alone, head 1 at the past.
    assert part("said").text == "300"
    assert cell(browser, 0, 2, 0)[:3] == [0xFD, 0xE7, 0x25]
    assert cell(browser, 0, 2, 1)[:3] == [0x44, 0x01, 0x54]
    assert cell(browser, 1, 1, 0)[:3] == cell(browser, 1, 1, 1)[:3] != [0x44, 0x01, 0x54]

    slider = part("step")
    slider.send_keys("\ue011")  # Home
    assert part("said").text == "0"
    assert slider.get_attribute("aria-valuetext") == "step 0"
    assert cell(browser, 0, 2, 0) == cell(browser, 0, 2, 1)
    slider.send_keys("\ue014")  # the right arrow
    assert part("said").text == "100"

    # The keyboard reads cells; words of the data are words.
    part("head").send_keys("head 0")
    canvas = browser.find_element("css selector", ".maps canvas")
    for key in ("\ue015", "\ue015", "\ue014"):  # down, down, right
        canvas.send_keys(key)
    assert told() == "Step 100, head 0: from 1 “<script>” to 1 “<script>” 0.17"
    part("row").send_keys("1")
    assert browser.execute_script("return window.hit === undefined")

    part("play").click()
    browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        (function wait() {
          const button = document.querySelector('[data-map="play"]');
          if (button.textContent === "Play") done(); else setTimeout(wait, 50);
        })();
        """
    )
    assert part("said").text == "300"
    assert browser.execute_script(
        "return document.scrollingElement.scrollWidth <= window.innerWidth"
    )
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    loud = [e["message"] for e in browser.get_log("browser") if e["level"] in {"SEVERE", "WARNING"}]
    assert [message for message in loud if "getImageData" not in message] == []


def test_a_browser_draws_512_tokens_and_follows_the_dark_mode(browser: Any, tmp_path: Path) -> None:
    weights = np.tril(np.ones((512, 512)))
    weights = (weights / weights.sum(axis=-1, keepdims=True))[None, None, None]
    weights = np.repeat(weights, 2, axis=0)
    (maps,) = fitted([(plain(weights, numbers(512)), weights)])
    path = publish(tmp_path / "out", Page("S", "s", "ok", maps=[maps]))
    open_page(browser, path)
    assert cell(browser, 0, 0, 0)[:3] == [0xFD, 0xE7, 0x25]
    assert cell(browser, 0, 0, 511)[:3] == [0x44, 0x01, 0x54]
    ink = "return getComputedStyle(document.querySelector('.maps canvas')).color"
    light = browser.execute_script(ink)
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": dark})
    assert browser.execute_script(ink) != light
    assert cell(browser, 0, 0, 0)[:3] == [0xFD, 0xE7, 0x25]
