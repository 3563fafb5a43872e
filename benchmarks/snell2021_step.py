"""A training step of Snell 2021's copying model against the plain PyTorch loop.

Both sides see the same sequences. Ours records attention, log β and accuracy every 10 steps, the
plain loop records nothing.
"""

from __future__ import annotations

import time
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnscope.engines import Descent, Observable, Record
from attnscope.engines.observe import Linear
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective, Seq2SeqReadings
from attnscope.tasks.copying import Copying
from attnscope.tasks.sequence_pairs import START, SequencePairs
from harness import Measured, Row, spread

BATCH, HIDDEN, LR = 128, 256, 1e-3
EVERY, SEEN = 10, 50


class Reference(nn.Module):
    """The model as one would write it down first.

    Args:
        model: where the start is copied from; no code is shared.
    """

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.embedding = nn.Embedding(model.source_vocabulary, HIDDEN)
        self.encoder = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
        self.decoder = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
        self.attention = nn.Linear(HIDDEN, HIDDEN)
        self.mixing = nn.Linear(2 * HIDDEN, HIDDEN)
        self.readout = nn.Linear(HIDDEN, model.target_vocabulary)
        for name in ("embedding", "encoder", "decoder", "mixing", "readout"):
            self.get_submodule(name).load_state_dict(model.get_submodule(name).state_dict())
        with torch.no_grad():
            self.attention.weight.copy_(model.head_W[0].T)
            self.attention.bias.copy_(model.head_b[0])
        self.adam = torch.optim.Adam(self.parameters(), lr=LR)

    def loss(self, pairs: SequencePairs) -> Tensor:
        """Return the mean of -log p over target tokens."""
        h, state = self.encoder(self.embedding(pairs.source))
        first = torch.full_like(pairs.target[:, :1], START)
        read = torch.cat([first, pairs.target[:, :-1]], dim=1)
        s, _ = self.decoder(self.embedding(read), state)
        weights = torch.softmax(self.attention(s) @ h.transpose(1, 2), dim=2)
        hidden = torch.tanh(self.mixing(torch.cat([weights @ h, s], dim=2)))
        return F.cross_entropy(self.readout(hidden).flatten(0, 1), pairs.target.flatten())

    def step(self, pairs: SequencePairs) -> None:
        """Take one step of Adam."""
        self.adam.zero_grad()
        self.loss(pairs).backward()
        self.adam.step()


class Once:
    """Looks at a batch once for all that is read off the same parameters."""

    def __init__(self, pairs: SequencePairs) -> None:
        self.pairs = pairs
        self.seen: Seq2SeqReadings | None = None

    def observables(self) -> tuple[Observable, ...]:
        """Return what is read, in this order: the first looks, the last forgets."""
        return (
            Observable("weights", self._weights, ("row", "head", "t", "l")),
            Observable("log_beta", self._log_beta, ("row", "t", "l")),
            Observable("accuracy", self._accuracy),
        )

    def _weights(self, model: nn.Module) -> Tensor:
        assert isinstance(model, Seq2Seq)
        self.seen = model.evaluate(self.pairs)
        return self.seen.weights

    def _log_beta(self, model: nn.Module) -> Tensor:
        assert self.seen is not None
        return self.seen.log_beta

    def _accuracy(self, model: nn.Module) -> Tensor:
        assert self.seen is not None
        right = (self.seen.predicted == self.pairs.target).float().mean()
        self.seen = None
        return right


def ours(model: Seq2Seq, task: Copying, steps: int, seed: int, record: Record) -> float:
    """Return the time of a run of the engine."""
    engine = Descent(
        lr=LR,
        optimizer="adam",
        batch_size=BATCH,
        samples=BATCH * (steps + 1),
        seed=seed,
        tick=1.0,
    )
    objective = Seq2SeqObjective(task.stream(seed))
    start = time.process_time()
    engine.run(model, objective, time=steps, record=[record])
    return time.process_time() - start


def plain(reference: Reference, task: Copying, steps: int, seed: int) -> float:
    """Return the time of the loop, on the batches that the engine asks for."""
    generator = torch.Generator().manual_seed(seed)
    batches = torch.randperm(BATCH * (steps + 1), generator=generator).split(BATCH)
    stream = task.stream(seed)
    start = time.process_time()
    for rows in batches[:-1]:
        reference.step(stream.batch(rows))
    return time.process_time() - start


def copying(steps: int = 10, pieces: int = 4) -> Measured:
    """Train on fresh sequences, in pieces in turns; every piece starts Adam anew on both sides."""
    task = Copying()
    torch.manual_seed(0)
    model = Seq2Seq(task.vocabulary, embedding=HIDDEN, hidden=HIDDEN, output="tanh")
    record = Record(Once(task.sample(SEEN, 0)).observables(), Linear(steps // EVERY + 1))
    ours_s, plain_s, gap = [], [], 0.0
    for piece in range(pieces):
        reference = Reference(model)
        # Each is first every other time, should that matter. The engine's time has the evaluation
        # at its last point in it, and the probes at the first: both count against it.
        if piece % 2:
            slow = plain(reference, task, steps, piece)
            fast = ours(model, task, steps, piece, record)
        else:
            fast = ours(model, task, steps, piece, record)
            slow = plain(reference, task, steps, piece)
        ours_s.append(fast / steps)
        plain_s.append(slow / steps)
        gap = max(gap, difference(model, reference))
    ratios = tuple(a / b for a, b in zip(plain_s, ours_s, strict=True))
    how = (
        f"{pieces} x {steps} steps, batch {BATCH}, H = {HIDDEN}, {task.length} words and the end; "
        f"largest difference of a weight {gap:.1e}; {spread(ratios)}"
    )
    return Measured(median(plain_s), median(ours_s), how, ratios)


def difference(model: Seq2Seq, reference: nn.Module) -> float:
    """Compare what both sides hold, the matrix of attention included."""
    with torch.no_grad():
        pairs = [(model.head_W[0].T, reference.attention.weight)]
        pairs += [
            (model.get_parameter(name), p)
            for name, p in reference.named_parameters()
            if not name.startswith("attention.")
        ]
        return max((ours - theirs).abs().max().item() for ours, theirs in pairs)


ROWS = (
    Row(
        "snell2021_step.copying",
        "a step of the copying model, read every 10 steps",
        "nn.LSTM, autograd, PyTorch, never read",
        "matrix-product peak",
        copying,
    ),
)
