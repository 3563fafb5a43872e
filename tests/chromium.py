"""A real browser for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(profile: Path, *, window: str = "1280,900", patience: float = 60.0) -> Iterator[Any]:
    """Yield a driver of Chromium, or skip the test.

    Args:
        profile: a folder for what the browser keeps.
        window: width and height.
        patience: seconds that a page may take to load, or a script to answer.
    """
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("Chromium and chromedriver are not installed: `make browser` installs them.")
    webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed.")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--window-size={window}", f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(patience)
    driver.set_script_timeout(patience)
    try:
        yield driver
    finally:
        driver.quit()
