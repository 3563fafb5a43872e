"""The gradient flow of a small transformer on real text, and gradient descent beside it.

    python examples/transformer_flow.py --out transformer_flow.png

A causal nn.TransformerEncoder (two layers, width 64, GELU, about 1e5 weights) predicts the next
character at every place of the first windows of SST-2 (`attnscope data get sst2`; without it, of a
text in this file). All windows are one batch, taken in chunks. It is trained by the flow, and by
gradient descent at two learning rates. Loss and sharpness, the largest eigenvalue of the Hessian,
are read at the same times of all three: gradient descent is held back where the sharpness meets
2 / learning rate, the edge of stability; the flow is not.
"""

from __future__ import annotations

import argparse
import time

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope import AttnscopeError, Descent, Flow, Linear, Observable, Record
from attnscope.datasets import labelled
from attnscope.engines import Chunked, Memory, Solution

LENGTH, CHUNK, POWER = 32, 16, 8
EMBEDDED = """Four score and seven years ago our fathers brought forth on this continent, a new
nation, conceived in Liberty, and dedicated to the proposition that all men are created equal.
Now we are engaged in a great civil war, testing whether that nation, or any nation so conceived
and so dedicated, can long endure. We are met on a great battle-field of that war. We have come
to dedicate a portion of that field, as a final resting place for those who here gave their lives
that that nation might live. It is altogether fitting and proper that we should do this. But, in
a larger sense, we can not dedicate, we can not consecrate, we can not hallow this ground. The
brave men, living and dead, who struggled here, have consecrated it, far above our poor power to
add or detract. The world will little note, nor long remember what we say here, but it can never
forget what they did here."""


def windows(count: int) -> tuple[Tensor, int]:
    """Return that many windows of LENGTH + 1 characters, as numbers, and how many there are."""
    try:
        text = " ".join(labelled("sst2").splits["train"].texts[: 2 * count]).lower()
    except AttnscopeError as error:
        print(f"{error}\nThe text of this file is used instead.")
        text = EMBEDDED.lower()
    alphabet = {letter: number for number, letter in enumerate(sorted(set(text)))}
    ids = torch.tensor([alphabet[letter] for letter in text])
    count = min(count, (len(ids) - 1) // LENGTH)
    return ids[: count * LENGTH + 1].unfold(0, LENGTH + 1, LENGTH), len(alphabet)


class Characters(nn.Module):
    """A causal encoder over characters."""

    def __init__(self, letters: int, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", batch_first=True)
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(LENGTH, width)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, letters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits of the next character at every place."""
        x = self.letters(ids) + self.places.weight
        logits: Tensor = self.head(self.layers(x, mask=self.mask, is_causal=True))
        return logits


class Sharpness:
    """The largest eigenvalue of the Hessian by power iteration, on differences of gradients.

    Iterations go on from the last reading's direction, so that a few are enough.
    """

    def __init__(self, loss: Chunked) -> None:
        self.loss, self.direction = loss, torch.empty(0)

    def __call__(self, model: nn.Module) -> Tensor:
        """Read it; the parameters are left as they were."""
        weights = [p for p in model.parameters() if p.requires_grad]
        start = [p.detach().clone() for p in weights]
        if not len(self.direction):
            self.direction = torch.randn(sum(p.numel() for p in weights))
        product = self.direction
        for _ in range(POWER):
            v = product / product.norm()
            there, back = (self._gradient(model, weights, start, v, e) for e in (1e-2, -1e-2))
            product = (there - back) / 2e-2
        self.direction = v
        with torch.no_grad():
            for p, value in zip(weights, start, strict=True):
                p.copy_(value)
        return v @ product

    def _gradient(
        self, model: nn.Module, weights: list[Tensor], start: list[Tensor], v: Tensor, far: float
    ) -> Tensor:
        with torch.no_grad():
            moves = v.split([p.numel() for p in weights])
            for p, value, move in zip(weights, start, moves, strict=True):
                p.copy_(value + far * move.view_as(p))
        found = torch.zeros_like(v)
        with torch.enable_grad():
            for rows in self.loss.chunks:
                mean = self.loss.loss(model, rows) * len(rows) / self.loss.rows
                found += torch.cat([g.flatten() for g in torch.autograd.grad(mean, weights)])
        return found


def train(
    engine: Flow | Descent, ids: Tensor, letters: int, until: float, points: int
) -> tuple[Solution, Memory]:
    """Train a fresh model; loss and sharpness are read at evenly spaced times."""

    def mean(model: nn.Module, rows: Tensor) -> Tensor:
        text = ids[rows]
        return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())

    loss, memory = Chunked(mean, rows=len(ids), size=CHUNK), Memory()
    read = (Observable("loss", loss), Observable("sharpness", Sharpness(loss)))
    record = [Record(read, Linear(points))]
    solution = engine.run(Characters(letters), loss, time=until, record=record, sink=memory)
    return solution, memory


def main() -> None:
    """Train three times, print what each needed, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--until", type=float, default=40.0, help="learning rate × steps")
    parser.add_argument("--windows", type=int, default=32, help="windows of 32 characters")
    parser.add_argument("--points", type=int, default=21, help="readings of loss and sharpness")
    parser.add_argument("--out", default="transformer_flow.png")
    given = parser.parse_args()
    torch.set_num_threads(1)
    ids, letters = windows(given.windows)
    size = sum(p.numel() for p in Characters(letters).parameters())
    print(f"{len(ids)} windows of {LENGTH} characters, {letters} letters, {size:,} weights")
    engines: dict[str, Flow | Descent] = {"flow": Flow()}
    engines |= {f"descent at {lr:g}": Descent(lr=lr) for lr in (0.2, 0.05)}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for number, (name, engine) in enumerate(engines.items()):
        began = time.process_time()
        solution, memory = train(engine, ids, letters, given.until, given.points)
        values, times = memory.arrays[0], memory.times[0]
        words = f"{name}: {solution.evaluations:,} gradients"
        print(
            f"{words}, loss {values['loss'][-1]:.4f}, sharpness {values['sharpness'][-1]:.1f}, "
            f"{time.process_time() - began:.0f} s of the processor, readings included; "
            f"{solution.status}; {dict(solution.gradients)}"
        )
        # The flow is a broad band, since descent below the edge lies upon it.
        colour, width = f"C{number}", 6 if isinstance(engine, Flow) else 1.5
        left.plot(times, values["loss"], color=colour, lw=width, label=words)
        right.plot(times, values["sharpness"], color=colour, lw=width, label=name)
        if isinstance(engine, Descent) and 2 / engine.lr < 3 * np.nanmax(values["sharpness"]):
            right.axhline(2 / engine.lr, color=colour, ls=":", label=f"2 / {engine.lr:g}")
    left.set(xlabel="time", ylabel="loss", yscale="log")
    right.set(xlabel="time", ylabel="largest eigenvalue of the Hessian")
    for axes in (left, right):
        axes.legend(frameon=False)
    figure.savefig(given.out, dpi=120)


if __name__ == "__main__":
    main()
