"""The model of Li 2023, against training as one would write it down first, on the same documents.

T = v = 10, 128 positions, d_a = 101, cross-entropy.
"""

from __future__ import annotations

import time
from functools import cache
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from attnscope.engines import Descent, Flow
from attnscope.models import TopicObjective, TopicTransformer
from attnscope.tasks import Documents, TopicDocuments, TopicStream
from harness import Measured, Row, spread

BATCH, STEPS, LR = 40, 600, 5.0
UNTIL = 5000.0
NAMES = ("W_K", "W_Q", "W_V")


class Reference:
    """One-hot vectors, all pairs of positions, autograd, a step at a time.

    Args:
        model: where the start is copied from; no code is shared.
    """

    def __init__(self, model: TopicTransformer) -> None:
        self.trained = [
            model.get_parameter(name).detach().clone().requires_grad_() for name in NAMES
        ]

    def loss(self, documents: Documents) -> Tensor:
        """Compute the cross-entropy at the selected positions, 1/|M| within a document."""
        w_k, w_q, w_v = self.trained
        x = F.one_hot(documents.visible, documents.vocabulary).to(w_v.dtype)
        keys = torch.einsum("aw,nlw->nal", w_k, x)
        queries = torch.einsum("aw,nlw->nal", w_q, x)
        scores = torch.einsum("nai,naj->nij", keys, queries) / len(w_k) ** 0.5
        attention = torch.softmax(scores, dim=1)
        values = torch.einsum("ew,nlw->nel", w_v, x)
        out = torch.einsum("nei,nij->nej", values, attention)
        losses = F.cross_entropy(out, documents.ids, reduction="none") * documents.selected
        return (losses.sum(dim=1) / documents.selected.sum(dim=1)).mean()

    def step(self, documents: Documents, lr: float) -> None:
        """Take one step of gradient descent."""
        gradient = torch.autograd.grad(self.loss(documents), self.trained)
        with torch.no_grad():
            for tensor, slope in zip(self.trained, gradient, strict=True):
                tensor.sub_(slope, alpha=lr)


class Ready:
    """Batches drawn beforehand, looked up by their first row number."""

    def __init__(self, stream: TopicStream, batches: list[Tensor]) -> None:
        self.drawn = {int(rows[0]): stream[rows] for rows in batches}

    def __getitem__(self, rows: Tensor) -> Documents:
        # Counting words belongs to a step: forget what was counted before.
        return self.drawn[int(rows[0])][torch.arange(len(rows))]


def model(noise: float = 1e-2) -> TopicTransformer:
    """Build the model, the same at every call."""
    source = torch.Generator().manual_seed(0)
    return TopicTransformer(101, noise=noise, generator=source)


def norms(trained: TopicTransformer) -> list[float]:
    return [trained.get_parameter(name).detach().norm().item() for name in NAMES]


def difference(ours: TopicTransformer, reference: Reference) -> float:
    return max(
        (ours.get_parameter(name) - tensor).detach().abs().max().item()
        for name, tensor in zip(NAMES, reference.trained, strict=True)
    )


def sgd(*, drawing: bool, pieces: int = 3) -> Measured:
    """Run SGD on fresh documents step by step, both sides with the same batches.

    The two take turns, a piece each; SGD has no memory, so pieces add up to one run. With
    ``drawing`` both sides draw their documents as they go.
    """
    task, steps = TopicDocuments(alpha=0.1, length=128), STEPS // pieces
    ours, reference = model(), Reference(model())
    ratios, slow_ms, fast_ms, gap = [], [], [], 0.0
    for piece in range(pieces):
        stream = TopicStream(task, piece)
        engine = Descent(lr=LR, batch_size=BATCH, samples=BATCH * (steps + 1), seed=piece)
        batches = order_of(engine)
        source = stream if drawing else Ready(stream, batches)
        objective = TopicObjective(source)  # type: ignore[arg-type]

        start = time.process_time()
        engine.run(ours, objective, time=steps * LR, record=[])
        middle = time.process_time()
        for rows in batches[:-1]:
            reference.step(source[rows], LR)
        fast_ms.append(1e3 * (middle - start) / steps)
        slow_ms.append(1e3 * (time.process_time() - middle) / steps)
        ratios.append(slow_ms[-1] / fast_ms[-1])
        gap = max(gap, difference(ours, reference))
    how = (
        f"{STEPS:,} steps in {pieces} pieces, batch {BATCH}, lr {LR:g}; largest difference of a "
        f"weight {gap:.1e}; {spread(tuple(ratios))}"
    )
    return Measured(median(slow_ms) / 1e3, median(fast_ms) / 1e3, how, tuple(ratios))


def order_of(engine: Descent) -> list[Tensor]:
    """Return the mini-batches that the engine is going to ask for in its first epoch."""
    assert engine.samples is not None
    generator = torch.Generator().manual_seed(engine.seed)
    return list(torch.randperm(engine.samples, generator=generator).split(BATCH))


@cache
def fixed_documents() -> Documents:
    return TopicDocuments(tau=3, length=128).sample(200, 0)


def flow(engine: Flow, repeats: int = 3) -> Measured:
    """Compare the flow to time 5,000 with 1,000 steps of descent, on the same fast gradient."""
    documents = fixed_documents()
    objective = TopicObjective(documents)
    ratios, flow_s, descent_s, plain_s = [], [], [], []
    reference = Reference(model())
    reference.step(documents, LR)
    for _ in range(repeats):
        flowing, descending = model(), model()
        start = time.process_time()
        solution = engine.run(flowing, objective, time=UNTIL, record=[])
        flowed = time.process_time()
        Descent(lr=LR).run(descending, objective, time=UNTIL / 5, record=[])
        descended = time.process_time()
        reference.step(documents, LR)
        flow_s.append(flowed - start)
        descent_s.append(5 * (descended - flowed))
        plain_s.append((time.process_time() - descended) * UNTIL / LR)
        ratios.append(descent_s[-1] / flow_s[-1])
    how = (
        f"{solution.evaluations} gradients; with einsum the steps would take "
        f"{median(plain_s):.0f} s; {spread(tuple(ratios))}"
    )
    return Measured(median(descent_s), median(flow_s), how, tuple(ratios))


def accuracy(engine: Flow) -> Measured:
    """Compare norms at time 5,000 with descent at a tenth of the learning rate, 10,000 steps."""
    objective = TopicObjective(fixed_documents())
    flowing, descending = model(), model()
    engine.run(flowing, objective, time=UNTIL, record=[])
    Descent(lr=LR / 10).run(descending, objective, time=UNTIL, record=[])
    pairs = list(zip(NAMES, norms(flowing), norms(descending), strict=True))
    worst = max(abs(ours / theirs - 1) for _, ours, theirs in pairs)
    how = "; ".join(f"||{name}|| {ours:.4f} and {theirs:.4f}" for name, ours, theirs in pairs)
    return Measured(0.02, worst, how)


LOOSE = Flow(rtol=5e-4, atol=5e-4)
EINSUM = "one-hot vectors, einsum, autograd, PyTorch"
STEPPED = "1,000 steps at rate 5 with our gradient"
ROWS = (
    Row("li2023.sgd", "a step of SGD on fresh documents", EINSUM, "drawing the documents",
        lambda: sgd(drawing=True)),
    Row("li2023.sgd_ready", "a step of SGD on documents that are there", EINSUM,
        "memory bandwidth", lambda: sgd(drawing=False)),
    Row("li2023.flow_loose", "flow to time 5,000 at 5e-4", STEPPED, "number of gradients",
        lambda: flow(LOOSE)),
    Row("li2023.flow", "flow to time 5,000", STEPPED, "number of gradients", lambda: flow(Flow())),
    Row("li2023.accuracy", "norms of that flow at 5e-4 against descent at rate 0.5", "2 %",
        "tolerance", lambda: accuracy(LOOSE), "relative"),
)  # fmt: skip
