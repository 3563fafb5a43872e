"""Models with known answers, and a sink that interrupts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from attnscope.engines import Checkpoint, Given, Linear, Memory, Observable, Record
from attnscope.models import BagAttention, classifier
from attnscope.models.pooling import cross_entropy
from attnscope.tasks import Bags

Loss = Callable[..., Tensor]


class Point(nn.Module):
    """A vector of parameters and nothing else."""

    def __init__(self, *at: float) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.tensor(at))


CURVATURE = torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64)


def quadratic(model: nn.Module) -> Tensor:
    """½ Σ c x²: the flow is x₀ exp(-c t)."""
    x = model.get_parameter("x")
    return 0.5 * (CURVATURE[: x.numel()] * x * x).sum()


def slope_of_exp(model: nn.Module) -> Tensor:
    """Σ exp(-x): the flow is log(t + exp(x₀))."""
    return torch.exp(-model.get_parameter("x")).sum()


class Perceptron(nn.Module):
    """A small tanh network with tied, unused and frozen parameters, as users have them."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        source = torch.Generator().manual_seed(seed)
        self.first = nn.Linear(3, 3)
        self.again = nn.Linear(3, 3)
        self.last = nn.Linear(3, 1)
        for p in self.parameters():
            nn.init.normal_(p, std=0.7, generator=source)
        self.again.weight = self.first.weight
        self.unused = nn.Parameter(torch.ones(2))
        self.offset = nn.Parameter(torch.full((3,), 0.3), requires_grad=False)
        self.register_buffer("inputs", torch.randn(12, 3, generator=source))
        self.register_buffer("targets", torch.sin(self.inputs.sum(1, keepdim=True)))
        self.inputs: Tensor
        self.targets: Tensor
        self.gain = 1.0

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = torch.tanh(self.first(inputs) + self.offset)
        out: Tensor = self.gain * self.last(torch.tanh(self.again(hidden)))
        return out


def louder(model: nn.Module) -> None:
    """Change the model in a way that its parameters do not show."""
    assert isinstance(model, Perceptron)
    model.gain = 2.0


def regression(model: nn.Module, rows: Tensor | None = None) -> Tensor:
    """Half the mean squared error of a :class:`Perceptron`, on all rows or some."""
    assert isinstance(model, Perceptron)
    inputs, targets = model.inputs, model.targets
    if rows is not None:
        inputs, targets = inputs[rows], targets[rows]
    return 0.5 * (model(inputs) - targets).square().mean()


def attention(bags: Bags, kind: str = "TC", std: float = 0.3, seed: int = 4) -> BagAttention:
    """Return the model of Lu 2021 on ``bags``."""
    source = torch.Generator().manual_seed(seed)
    classes = int(bags.labels.max()) + 1
    head = classifier(kind, 4, classes, generator=source)  # type: ignore[arg-type]
    return BagAttention(bags.vocabulary, 4, head, std=std, generator=source)


def topic_loss(bags: Bags) -> Loss:
    """Return the full-batch cross-entropy on ``bags``."""
    return lambda model: cross_entropy(model(bags), bags.labels)


def flat(model: nn.Module) -> Tensor:
    """Return a copy of all trainable parameters, one after the other."""
    return torch.cat([p.detach().reshape(-1) for p in model.parameters() if p.requires_grad])


THETA = Observable("theta", flat, ("parameter",))


def theta(points: int) -> Record:
    """Record all parameters at evenly spaced times."""
    return Record((THETA,), Linear(points))


def theta_at(*times: float) -> Record:
    """Record all parameters at the times given."""
    return Record((THETA,), Given(times))


class Interrupter(Memory):
    """Stop after some steps, and keep the checkpoint as bytes, as a store on disk would."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after
        self.saved: tuple[bytes, str] | None = None

    def step(self, time: float, loss: float, checkpoint: Callable[[], Checkpoint]) -> bool:
        self.left -= 1
        return self.left >= 0

    def close(self, checkpoint: Callable[[], Checkpoint] | None) -> None:
        if checkpoint is not None:
            taken = checkpoint()
            tensors = {name: t.detach().clone() for name, t in taken.tensors.items()}
            self.saved = safetensors.torch.save(tensors), json.dumps(taken.values)

    def reload(self) -> Checkpoint:
        assert self.saved is not None
        return Checkpoint(safetensors.torch.load(self.saved[0]), json.loads(self.saved[1]))


class Continuing(Memory):
    """Go on writing where another sink stopped."""

    def __init__(self, before: Memory) -> None:
        super().__init__()
        self.before = before

    def open(self, model: nn.Module, records: list[Record], times: list[np.ndarray]) -> None:
        super().open(model, records, times)
        assert all(np.array_equal(a, b) for a, b in zip(times, self.before.times, strict=True))
        self.arrays = [{k: v.copy() for k, v in part.items()} for part in self.before.arrays]


def order(sizes: Sequence[float], errors: Sequence[float]) -> float:
    """Return the slope of log error over log size."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])
