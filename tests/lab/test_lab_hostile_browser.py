"""Hostile names of runs, cases and words in a real browser: they are shown, and do nothing."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from lab_folders import EVIL, served, write_run
from torch import Tensor, nn

import attnscope
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.experiment import Problem, Study
from chromium import chromium
from findings import finding
from toy_study import Point

NAMES = (EVIL.replace("/", ""), "javascript:window.hit=3", "'\"><svg onload=window.hit=4>\n{{hit}}")
FOUND = """
const found = [];
(function look(root) {
  for (const each of root.querySelectorAll("*")) {
    if (each.matches("img[src='x'], svg[onload], [onerror], [onload]")) found.push(each.outerHTML);
    const runs = each.matches("script:not([type='application/json'])");
    if (runs && each.textContent.includes("window.hit")) found.push("script");
    if (each.matches("a[href^='javascript']")) found.push(each.outerHTML);
    if (each.shadowRoot) look(each.shadowRoot);
  }
})(document);
return found;
"""
"""Everything on the page, shadow trees included, that hostile words would have become as markup."""
DRAWN = "return document.querySelector('#figures .plot > *')?.parentElement"


@dataclass(frozen=True)
class Hostile(Study):
    """Cases with names that are markup."""

    seeds: int = 1
    training: Flow | Descent = Descent(lr=0.1, epochs=20)

    cases = (EVIL, "<b>bold</b>")

    def build(self, case: str, seed: int) -> Problem:
        def loss(model: nn.Module) -> Tensor:
            return 0.5 * model.get_parameter("x").square().sum()

        record = Record((Observable("loss", loss),), Linear(5))
        return Problem(Point((1.0, 2.0)), loss, [record])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("lab") / "runs"
    attnscope.run(Hostile(), root / "drawn", workers=1)
    shutil.copytree(root / "drawn", root / NAMES[0])
    words = dict.fromkeys(("sentence", "source", "paper", "criterion", "reason", "measure"), EVIL)
    for name in NAMES[1:]:
        evil = finding(key=EVIL, control_sentence=EVIL, **words)
        write_run(root, name, study=EVIL, spec={EVIL: EVIL}, status=EVIL, findings=(evil,))
    with served(root) as (host, port):
        yield f"http://{host}:{port}"


def test_hostile_names_words_and_labels_do_nothing(base: str, tmp_path: Path) -> None:
    both = "&".join(f"run={quote(name, safe='')}" for name in ("drawn", NAMES[0]))
    drawn = [f"/live/{quote(NAMES[0], safe='')}", f"/compare?{both}"]
    pages = [
        *drawn,
        "/runs",
        "/runs?part=all",
        "/claims",
        f"/?world={quote(EVIL)}&{quote(EVIL)}={quote(EVIL)}&m={quote(EVIL)}",
        f"/nothing/{quote(EVIL)}",
        *(f"/live/{quote(name, safe='')}" for name in NAMES[1:]),
        *(f"/runs/{quote(name, safe='')}/" for name in NAMES[1:]),
        f"/runs/{quote(NAMES[1], safe='')}/figure?claim={quote(EVIL)}",
    ]
    with chromium(tmp_path / "profile", patience=120.0) as browser:
        from selenium.webdriver import ActionChains

        for page in pages:
            browser.get(f"{base}{page}")
            if page in drawn:
                plot = _until(browser, DRAWN)
                for across in (-200, -100, 0, 100, 200):  # Labels stand in what a mouse brings up.
                    ActionChains(browser).move_to_element_with_offset(plot, across, 0).perform()
            assert browser.execute_script("return window.hit") is None, page
            assert browser.execute_script(FOUND) == [], page
            if page.startswith(("/runs?", "/claims")):
                assert "window.hit" in browser.execute_script("return document.body.textContent")


def _until(browser: Any, script: str) -> Any:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = browser.execute_script(script)
        if found:
            return found
        time.sleep(0.1)
    said = browser.execute_script("return document.body.textContent")
    raise AssertionError(f"in vain: {said}")
