"""Draw a picture of the lab: ``python docs/images/lab.py QUERY FILE.png [WIDTH HEIGHT] [dark]``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait


def main(query: str, file: str, width: str = "1280", height: str = "1500", theme: str = "") -> None:
    """Start a lab, wait until curves are drawn on every side, and take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "attnscope.cli", "lab", folder, "--port", "0", "--no-open"]
        lab = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert lab.stdout is not None
        address = lab.stdout.readline().split()[-1]
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
            options.add_argument(flag)
        options.add_argument(f"--window-size={width},{height}")
        driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            driver.get(address)
            driver.execute_script("localStorage.setItem('attnscope-theme', arguments[0])", theme)
            driver.get(f"{address}?{query}")
            WebDriverWait(driver, 120).until(
                lambda d: d.execute_script(
                    "return [...document.querySelectorAll('.bench')].every(b => b.dataset.drawn)"
                )
            )
            Path(file).write_bytes(driver.get_screenshot_as_png())
        finally:
            driver.quit()
            lab.terminate()
            lab.wait(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
