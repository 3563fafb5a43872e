"""A training step of Snell 2021's translation model at the paper's sizes.

Both sides see the same batches. The plain loop is what one would write first: packed nn.LSTM, and
probabilities of all words at all positions, padding left out of the loss. Dropout is off on both
sides, so that their weights can be compared. Pairs are made up, with the lengths of Multi30k.
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnscope.engines import Descent
from attnscope.models.seq2seq import Seq2Seq, cross_entropy
from attnscope.studies.snell2021.agreement.translation import read_pairs
from attnscope.tasks.length_batches import LengthBatches
from attnscope.tasks.parallel_pieces import PiecePairs
from attnscope.tasks.sequence_pairs import END, PAD, START, SequencePairs
from harness import Measured, Row, spread
from snell2021_step import difference

BATCH, HIDDEN, WORDS, LR = 16, 256, 8000, 1e-3
EPOCHS, TRAINING = 20, 29_000
"""Of Multi30k in the paper, for the hours that a run takes."""
READ = 40


class Reference(nn.Module):
    """The model as one would write it down first.

    Args:
        model: where the start is copied from; no code is shared.
    """

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.encoder = nn.LSTM(HIDDEN, HIDDEN, 2, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(HIDDEN, HIDDEN, 2, batch_first=True)
        self.attention = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.projection = nn.Linear(2 * HIDDEN, HIDDEN)
        self.mixing = nn.Linear(2 * HIDDEN, HIDDEN)
        self.readout = nn.Linear(HIDDEN, WORDS)
        for name in ("embedding", "encoder", "decoder", "projection", "mixing", "readout"):
            self.get_submodule(name).load_state_dict(model.get_submodule(name).state_dict())
        with torch.no_grad():
            self.attention.weight.copy_(model.head_W[0].T)
            self.attention.bias.copy_(model.head_b[0])
        self.adam = torch.optim.Adam(self.parameters(), lr=LR)

    def loss(self, pairs: SequencePairs) -> Tensor:
        """Return the mean of -log p over target tokens."""
        here = pairs.source != PAD
        h, (hidden, cell) = self._run(self.encoder, pairs.source, None)
        start = tuple(part.unflatten(0, (2, 2)).mean(dim=1) for part in (hidden, cell))
        first = torch.full_like(pairs.target[:, :1], START)
        read = torch.cat([first, pairs.target[:, :-1]], dim=1)
        s, _ = self._run(self.decoder, read, start, (pairs.target != PAD).sum(dim=1))
        scores = self.attention(s) @ h.transpose(1, 2)
        weights = torch.softmax(scores.masked_fill(~here[:, None, :], -torch.inf), dim=2)
        context = self.projection(weights @ h)
        logits = self.readout(torch.relu(self.mixing(torch.cat([context, s], dim=2))))
        return F.cross_entropy(logits.flatten(0, 1), pairs.target.flatten(), ignore_index=PAD)

    def step(self, pairs: SequencePairs) -> None:
        """Take one step of Adam."""
        self.adam.zero_grad()
        self.loss(pairs).backward()
        self.adam.step()

    def _run(
        self,
        cell: nn.LSTM,
        ids: Tensor,
        start: tuple[Tensor, ...] | None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        lengths = (ids != PAD).sum(dim=1) if lengths is None else lengths
        packed = pack_padded_sequence(
            self.embedding(ids), lengths, batch_first=True, enforce_sorted=False
        )
        out, last = cell(packed, start)
        return pad_packed_sequence(out, batch_first=True, total_length=ids.shape[1])[0], last


def made_up(count: int) -> PiecePairs:
    """Return pairs whose lengths are about those of Multi30k: 15 pieces, 60 at most."""
    dice = np.random.default_rng(0)
    length = np.clip(np.round(np.exp(dice.normal(2.6, 0.3, count))), 4, 59).astype(int)
    other = np.clip(np.round(length * np.exp(dice.normal(0, 0.15, count))), 4, 59).astype(int)

    def words(sizes: np.ndarray) -> list[np.ndarray]:
        # Frequencies fall as one over the rank, as those of words do.
        drawn = np.exp(dice.random(int(sizes.sum())) * np.log(WORDS - 4)).astype(np.int64) + 3
        return [np.append(row, END) for row in np.split(drawn, sizes.cumsum()[:-1])]

    return PiecePairs(words(length), words(other))


def translation(steps: int = 10, pieces: int = 3) -> Measured:
    """Train in pieces in turns; every piece starts Adam anew on both sides."""
    pairs = made_up(TRAINING)
    batches = LengthBatches(pairs.source_lengths * 100 + pairs.target_lengths, BATCH, 0)
    torch.manual_seed(0)
    model = Seq2Seq(
        WORDS, hidden=HIDDEN, layers=2, bidirectional=True, output="relu", projection=True
    )

    def batch(number: int) -> SequencePairs:
        return pairs.batch(batches.rows(number))

    def ours(first: int) -> float:
        engine = Descent(
            lr=LR, optimizer="adam", batch_size=1, samples=steps + 1, tick=1.0, shuffle=False
        )
        start = time.process_time()
        engine.run(
            model, lambda m, k: cross_entropy(m, batch(first + int(k))), time=steps, record=[]
        )
        # The engine looks at the gradient after its last step too.
        return (time.process_time() - start) * steps / (steps + 1)

    def plain(reference: Reference, first: int) -> float:
        start = time.process_time()
        for number in range(steps):
            reference.step(batch(first + number))
        return time.process_time() - start

    fast, slow, gap = [], [], 0.0
    for piece in range(pieces):
        reference = Reference(model)
        order = (True, False) if piece % 2 else (False, True)
        for plainly in order:
            if plainly:
                slow.append(plain(reference, piece * steps))
            else:
                fast.append(ours(piece * steps))
        gap = max(gap, difference(model, reference))
    ratios = tuple(a / b for a, b in zip(slow, fast, strict=True))
    rate = steps / median(fast)
    hours = EPOCHS * batches.per_epoch / rate / 3600
    read = pairs.rows(range(READ))
    start = time.process_time()
    read_pairs(model, read)
    cells = int(read.cells.sum()) / (time.process_time() - start)
    how = (
        f"{pieces} x {steps} steps; {EPOCHS} epochs of Multi30k take {hours:.1f} h; attention, "
        f"log β and accuracy are read of {cells:,.0f} cells a second; largest difference of a "
        f"weight {gap:.1e}; {spread(ratios)}"
    )
    return Measured(median(slow) / steps, median(fast) / steps, how, ratios)


ROWS = (
    Row(
        "snell2021_translation.step",
        "a step of the translation model",
        "packed nn.LSTM, autograd, PyTorch",
        "matrix-product peak",
        translation,
    ),
)
