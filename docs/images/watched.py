"""Draw a picture of a watched report: ``python docs/images/watched.py FILE.png [WIDTH HEIGHT]``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import torch
from selenium import webdriver
from selenium.webdriver.support.ui import WebDriverWait
from transformers import GPT2Config, GPT2LMHeadModel

import attnscope

WORDS = ("the", "old", "cat", "sat", "on", "a", "warm", "mat", "and", "saw", "the", "dog")
NAMES = [*dict.fromkeys(WORDS), *(f"word{n}" for n in range(40))]


def train(folder: Path) -> Path:
    """Train a model of three layers to repeat what it read, with one burst of large steps."""
    torch.manual_seed(0)
    config = GPT2Config(n_layer=3, n_head=4, n_embd=96, vocab_size=len(NAMES), n_positions=32,
                        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0,
                        eos_token_id=0)  # fmt: skip
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3)

    def batch(rows: int) -> torch.Tensor:
        half = torch.randint(0, len(NAMES), (rows, 12))
        return torch.cat([half, half], dim=1)

    probe = batch(2)
    probe[0] = torch.tensor([NAMES.index(word) for word in WORDS]).repeat(2)
    tokens = [[NAMES[word] for word in row] for row in probe.tolist()]
    with attnscope.watch(
        model, folder, every=10, probe=probe, tokens=tokens, optimizer=optimizer
    ) as scope:
        for step in range(400):
            optimizer.param_groups[0]["lr"] = 0.06 if 300 <= step < 306 else 1.5e-3
            ids = batch(16)
            loss = model(input_ids=ids, labels=ids).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss)
    return attnscope.write_report(attnscope.open_run(folder))


def main(file: str, width: str = "1280", height: str = "1420") -> None:
    """Train, write the report, and take its picture."""
    with tempfile.TemporaryDirectory() as folder:
        report = train(Path(folder) / "run")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
            options.add_argument(flag)
        options.add_argument(f"--window-size={width},{height}")
        driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            driver.get(report.as_uri())
            WebDriverWait(driver, 60).until(
                lambda d: d.execute_script(
                    "return [...document.querySelectorAll('.overview canvas')]"
                    ".every((canvas) => canvas.dataset.reading) && "
                    "document.querySelector('.maps[open] canvas').mapPlan !== undefined"
                )
            )
            Path(file).write_bytes(driver.get_screenshot_as_png())
        finally:
            driver.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
