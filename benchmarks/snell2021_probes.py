"""What reading everything at the paper's steps costs a classifier on SST, over its whole run.

A run of 4,000 steps is read 22 times: attention, the lexical probe and saliency of 1,821 validation
and 500 training texts. Steps and readings are timed in turns, and the ratio is

    4,000 steps / (4,000 steps + 22 readings).

Needs the data: ``attnscope data get sst2``, or ATTNSCOPE_DATA.
"""

from __future__ import annotations

import statistics
from functools import partial

import torch

from attnscope.studies.snell2021 import Agreement
from harness import Measured, Row, seconds

STEPS, ROUNDS, AT_ONCE = 4000, 3, 10


def whole_run(saliency: bool) -> Measured:
    setup = Agreement(data="sst2", glove="none").setup
    model, loss = setup.model("normal", 20), setup.loss("normal", 20)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    (record,) = setup.records("normal", saliency)
    step = 0

    def train() -> None:
        nonlocal step
        optimizer.zero_grad()
        loss(model, torch.tensor([step])).backward()
        optimizer.step()
        step += 1

    def read() -> None:
        for observable in record.observables:
            observable.read(model)

    steps, readings = [], []
    for _ in range(ROUNDS):
        steps.append(seconds(train, AT_ONCE))
        readings.append(seconds(read))
    bare = STEPS * statistics.median(steps)
    times = len(record.times(STEPS))
    reading = statistics.median(readings)
    how = f"a step {bare / STEPS:.3f} s, a reading {reading:.2f} s, {times} of them"
    return Measured(bare, bare + times * reading, how)


BARE, LIMIT = "the same run, never read", "forward passes of the texts that are read"
ROWS = (
    Row("snell2021_probes.all", "classifier on SST, all probes at 22 steps", BARE, LIMIT,
        partial(whole_run, True)),
    Row("snell2021_probes.no_saliency", "classifier on SST, without saliency", BARE, LIMIT,
        partial(whole_run, False)),
)  # fmt: skip
