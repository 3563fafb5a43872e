"""A small model with two heads that can be given each flaw, trained a little while watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.trajectory import open_run
from attnscope.watching import watch

WORDS, LENGTH, WIDTH, CLASSES = 14, 8, 16, 4


class Finder(nn.Module):
    """Says which of four words stands in a row, whatever the others are."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        mixed, _ = self.attention(x, x, x, need_weights=False)
        logits: Tensor = self.head(mixed.mean(dim=1))
        return logits


def rows(count: int) -> tuple[Tensor, Tensor]:
    """Return rows with one word of four among others, and which one it is."""
    ids = torch.randint(CLASSES, WORDS, (count, LENGTH))
    labels = torch.randint(0, CLASSES, (count,))
    ids[torch.arange(count), torch.randint(0, LENGTH, (count,))] = labels
    return ids, labels


def scale_queries_and_keys(model: Finder, factor: float, heads: slice = slice(None)) -> None:
    """Make W^Q and W^K of some heads smaller or larger."""
    with torch.no_grad():
        for matrix in model.attention.in_proj_weight[: 2 * WIDTH].view(2, 2, WIDTH // 2, WIDTH):
            matrix[heads] *= factor


def watched(
    folder: Path,
    flaw: Callable[[Finder], None] = lambda model: None,
    *,
    lr: float = 0.02,
    late_lr: float | None = None,
    plain: bool = False,
    noise: bool = False,
    steps: int = 60,
    record: list[str] | None = None,
) -> xr.DataTree:
    """Train a model with a flaw, or without, and return what was seen.

    Args:
        folder: of the run.
        flaw: is done to the model before it is trained.
        lr: learning rate.
        late_lr: learning rate of the second half, if it is another.
        plain: gradient descent in place of Adam.
        noise: labels that have nothing to do with the rows.
        steps: of training.
        record: readings; all usual ones unless given.
    """
    torch.manual_seed(5)
    model = Finder()
    flaw(model)
    kind = torch.optim.SGD if plain else torch.optim.Adam
    optimizer = kind([p for p in model.parameters() if p.requires_grad], lr=lr)
    with watch(model, folder, record, every=4, probe=rows(6)[0], optimizer=optimizer) as scope:
        for step in range(steps):
            if late_lr is not None and step == steps // 2:
                optimizer.param_groups[0]["lr"] = late_lr
            ids, labels = rows(32)
            if noise:
                labels = torch.randint(0, CLASSES, labels.shape)
            loss = nn.functional.cross_entropy(model(ids), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scope.step(loss)
    return open_run(folder)
