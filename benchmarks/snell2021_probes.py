"""What reading everything at the paper's steps costs a classifier on SST, over its whole run.

One thread, processor time. A run of 4,000 steps is read 22 times: attention, the lexical probe and
saliency of 1,821 validation and 500 training texts. Steps and readings are timed in turns in one
process, and the ratio of the whole run is

    (4,000 steps + 22 readings) / 4,000 steps.
"""

from __future__ import annotations

import statistics
import time

import torch

from attnscope.errors import AttnscopeError
from attnscope.studies.snell2021 import Agreement

STEPS, ROUNDS, AT_ONCE = 4000, 5, 20


def main() -> None:
    torch.set_num_threads(1)
    study = Agreement(data="sst2", glove="none")
    try:
        side = study.side
    except AttnscopeError as error:
        print(f"left out: {error}")
        return
    model, loss = side.model("normal", 20), side.loss("normal", 20)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    all_probes, no_saliency = (
        side.readings("normal", first).observables() for first in (True, False)
    )
    step, readings, plain = 0, [], []
    seconds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(AT_ONCE):
            optimizer.zero_grad()
            loss(model, torch.tensor([step])).backward()
            optimizer.step()
            step += 1
        seconds.append((time.process_time() - begun) / AT_ONCE)
        for observables, kept in ((all_probes, readings), (no_saliency, plain)):
            begun = time.process_time()
            for observable in observables:
                observable.read(model)
            kept.append(time.process_time() - begun)
    times = len(side.evaluation)
    one = statistics.median(seconds)
    print(f"a step: {1e3 * one:.0f} ms of the processor; the run is read {times} times")
    for name, kept in (("all probes (run A)", readings), ("without saliency (B, C, ...)", plain)):
        reading = statistics.median(kept)
        ratio = 1 + times * reading / (STEPS * one)
        print(f"{name}: a reading {reading:.2f} s, the whole run {ratio:.3f}x of the bare loop")


if __name__ == "__main__":
    main()
