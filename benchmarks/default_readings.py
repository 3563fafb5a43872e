"""What the default readings cost, every 10 steps, of four layers of width 128.

The recorder's processor time in every step, and what its copy of the gradients adds to the steps
that are read, over the time of a step that is not; and the mean of every reading.

    python benchmarks/default_readings.py        200 steps of 16 x 32 words, a probe batch of 8 x 32
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from statistics import median

import torch
from torch import Tensor, nn

from attnscope.watching import watch

WIDTH, WORDS, EVERY = 128, 50, 10


class Model(nn.Module):
    """Four layers of PyTorch's own encoder."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of words."""
        logits: Tensor = self.head(self.layers(self.words(ids)))
        return logits


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    model, ids = Model(), torch.randint(0, WORDS, (16, 32))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    trained, recorded = [], []
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        scope = watch(model, f"{folder}/run", every=EVERY, probe=ids[:8], optimizer=optimizer)
        for _ in range(steps):
            begun = time.thread_time()
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            between = time.thread_time()
            scope.step(loss)
            trained.append(between - begun)
            recorded.append(time.thread_time() - between)
        scope.close()
    read = [number for number in range(steps) if (number + 1) % EVERY == 0]
    plain = median(trained[number] for number in range(steps) if number not in read)
    # Arrays are made with the first readings of a training, once.
    later = read[1:] or read
    copies = median(trained[number] - plain for number in later)
    reading = sum(recorded[number] for number in later) / len(later) + copies
    rest = median(recorded[number] for number in range(steps) if number not in read)
    print(
        f"a step {1e3 * plain:.1f} ms, a reading {1e3 * reading:.1f} ms, else {1e6 * rest:.0f} us"
    )
    print(f"{(reading / EVERY + rest) / plain:.1%} of the training")
    for name, spent in scope.costs.milliseconds().items():
        print(f"  {name:36} {spent:7.2f} ms, {scope.costs.seconds[name][0]} times")


if __name__ == "__main__":
    main()
