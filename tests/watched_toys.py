"""A small model with attention, a loop that trains it, and a point that shows its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.trajectory import RunFolder
from attnscope.watching.moment import Evaluation, Handle, Reading
from attnscope.watching.recording.losses import LOSS
from attnscope.watching.scope import Scope


class Attention(nn.Module):
    """Two heads over short sequences; the last weights are an attribute, as many people have it."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.weights = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        split = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = split
        self.weights = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
        mixed = (self.weights @ v).transpose(1, 2).reshape(rows, length, width)
        out: Tensor = self.out(mixed)
        return out


class Reader(nn.Module):
    """Says which word comes back; dropout and batch statistics make it easy to disturb."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.attention = Attention()
        self.norm, self.dropout = nn.BatchNorm1d(8), nn.Dropout(0.2)
        self.head = nn.Linear(8, 11)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids)
        x = x + self.attention(x)
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        logits: Tensor = self.head(self.dropout(x))
        return logits


class Own:
    """The attention of a :class:`Reader`."""

    name, heads, kind = "attention", 2, "own attention"

    def __init__(self, model: Reader) -> None:
        self.module = model.attention

    def attach(self, keep: Callable[[Tensor], None]) -> Handle:
        return self.module.register_forward_hook(lambda module, *_: keep(module.weights))


WEIGHTS = Reading(
    "attention",
    lambda moment: moment.attention[0] if moment.step else None,  # type: ignore[arg-type,return-value]
    ("row", "head", "query", "key"),
    frozenset({"attention"}),
    meaning="attention weights of the training batch",
)
NORM = Reading("norm", lambda moment: moment.model.get_parameter("head.weight").norm())


def scope(
    model: nn.Module,
    out: Path,
    tracks: Sequence[tuple[str, int, Sequence[Reading]]] = (("step", 1, (LOSS, NORM)),),
    **options: Any,
) -> Scope:
    """Return a recording of a :class:`Reader` with everything by hand."""
    points = [Own(model)] if isinstance(model, Reader) else []
    given: dict[str, Any] = {"points": points, "evaluate": None, "optimizer": None, "spec": {}}
    return Scope(model, RunFolder(out), tracks, **{**given, **options})


def train(
    steps: int,
    watch: Callable[[Reader, torch.optim.Optimizer], Scope] | None = None,
    each: Callable[[int, Reader, float], None] = lambda step, model, loss: None,
) -> tuple[Reader, list[float]]:
    """Train, watched or not; ``each`` is called after every step."""
    torch.manual_seed(3)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses: list[float] = []

    def loop(recorder: Scope | None) -> None:
        for step in range(1, steps + 1):
            ids = torch.randint(0, 11, (4, 6))
            loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if recorder is not None:
                recorder.step(loss)
            each(step, model, loss.item())

    if watch is None:
        loop(None)
    else:
        with watch(model, optimizer) as recorder:
            loop(recorder)
    return model, losses


__all__ = ["LOSS", "NORM", "WEIGHTS", "Evaluation", "Own", "Reader", "scope", "train"]
