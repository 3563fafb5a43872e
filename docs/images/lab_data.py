"""Draw a picture of the lab's page on data: ``python docs/images/lab_data.py SET FILE.png``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait

SAY = """
const choice = document.getElementById("choice");
choice.value = arguments[0];
choice.dispatchEvent(new Event("change"));
const epochs = document.getElementById("epochs");
epochs.value = 5;
epochs.dispatchEvent(new Event("input"));
document.getElementById("ask").requestSubmit();
"""


def main(name: str, file: str, width: str = "900", height: str = "780") -> None:
    """Start a lab, let it say what it has to say of a set, train, and take the picture."""
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
            driver.get(f"{address}data")
            driver.execute_script(SAY, name)
            for what in ("said", "trained"):
                WebDriverWait(driver, 200).until(
                    lambda d, what=what: d.execute_script(f"return document.body.dataset.{what}")
                )
                if what == "said":
                    driver.execute_script("document.getElementById('train').click()")
            driver.execute_script("document.getElementById('shown').scrollIntoView()")
            Path(file).write_bytes(driver.get_screenshot_as_png())
        finally:
            driver.quit()
            lab.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
