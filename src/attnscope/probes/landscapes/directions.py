"""Directions in the space of a model's parameters, and moving the model along them.

A direction touches the parameters that patterns name: ``"W_Q"`` is every parameter whose name ends
in it (``layers.0.attention.W_Q``), ``"layers.1.*"`` is a pattern of :mod:`fnmatch`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError, nearest

Block = str | Sequence[str]
"""One pattern of parameter names, or several."""


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions d₁, d₂, ... at a point θ* of the parameters.

    Args:
        parts: for each parameter that any direction moves, its share of all of them, shape
            ``(count, *shape)``.
        words: how they were chosen, in a phrase.
        labels: what each one moves, one phrase a direction, for the axes of a plot.
        filter_normalised: whether each filter has the norm of the parameters' own filter; ``None``
            for directions that were not drawn at random.
    """

    parts: dict[str, Tensor]
    words: str
    labels: tuple[str, ...]
    filter_normalised: bool | None = None

    def __post_init__(self) -> None:
        for label, norm in zip(self.labels, self.norms, strict=True):
            if not np.isfinite(norm):
                raise AttnscopeError(f"The direction {label} has norm {norm}: expected numbers.")
            if norm == 0:
                raise AttnscopeError(
                    f"The direction {label} has norm 0: it moves nothing. Expected one that does; "
                    "filters that are zero have filter-normalised directions that are zero."
                )

    @cached_property
    def moves(self) -> dict[str, tuple[bool, ...]]:
        """Return for each parameter which directions move it at all."""
        return {
            name: tuple(bool(along.any()) for along in part) for name, part in self.parts.items()
        }

    @property
    def norms(self) -> np.ndarray:
        """Return ‖d‖ of each direction."""
        squares = [part.double().flatten(1).square().sum(1) for part in self.parts.values()]
        return np.sqrt(torch.stack(squares).sum(0).cpu().numpy())

    def ray(self, index: int) -> Self:
        """Return one of the directions alone."""
        parts = {name: part[index : index + 1] for name, part in self.parts.items()}
        label = (self.labels[index],)
        return type(self)(parts, self.words, label, self.filter_normalised)


def matching(model: nn.Module, block: Block) -> tuple[str, ...]:
    """Return the names of the parameters of a block, in the model's own order.

    Raises:
        AttnscopeError: a pattern matches nothing; the sentence says which names are near.
    """
    names = [name for name, _ in model.named_parameters()]
    found: set[str] = set()
    for pattern in [block] if isinstance(block, str) else block:
        hits = [name for name in names if fnmatchcase(name, pattern) or _ends(name, pattern)]
        if not hits:
            ends = dict.fromkeys(name.rpartition(".")[2] for name in names)
            # Case first: 'W_q' is as near to 'W_V' as to 'W_Q' in letters.
            same = [name for name in (*ends, *names) if name.casefold() == pattern.casefold()]
            guess = nearest(same[0] if same else pattern, [*ends, *names])
            raise AttnscopeError(
                f"No parameter of {type(model).__name__} is named '{pattern}'.{guess} Expected "
                f"an ending or a pattern of: {', '.join(names[:12])}"
                f"{f' and {len(names) - 12} more' if len(names) > 12 else ''}."
            )
        found.update(hits)
    return tuple(name for name in names if name in found)


def random_directions(
    model: nn.Module, blocks: Sequence[Block], *, filter_normalised: bool = True, seed: int = 0
) -> Directions:
    """Draw one direction for each block, with independent standard normal entries.

    Filter-normalised (Li et al. 2018, "Visualizing the Loss Landscape of Neural Nets"), each
    filter of a direction is scaled to the norm of the same filter of the parameters, so that a step
    of 1 is as large as the weights whatever their scale. A filter is what one index of the first
    axis holds: a row of a linear layer, a head of weights of shape ``(heads, width, head_width)``;
    a vector is one filter. Otherwise the whole direction has norm 1.

    Args:
        model: where the parameters are now, θ*.
        blocks: what each direction moves; ``("W_Q", "W_K")`` gives one in W_Q of all layers and
            one in W_K of all layers, ``(("W_Q", "W_K"),) * 2`` two in both.
        filter_normalised: scale filter by filter.
        seed: of the draw; the same seed gives the same directions before scaling.
    """
    if not blocks:
        raise AttnscopeError("No blocks were given: expected one or more, such as ('W_Q', 'W_K').")
    generator = torch.Generator().manual_seed(seed)
    chosen = [matching(model, block) for block in blocks]
    named = dict(model.named_parameters())
    union = [name for name in named if any(name in names for names in chosen)]
    parts = {
        name: named[name].detach().new_zeros(len(blocks), *named[name].shape) for name in union
    }
    for index, names in enumerate(chosen):
        for name in names:
            own = named[name].detach()
            if not own.isfinite().all():
                wrong = int((~own.isfinite()).sum())
                raise AttnscopeError(
                    f"The parameter {name} has {wrong:,} entries that are not finite: expected "
                    "numbers, a point θ* that a plane can go through."
                )
            # Drawn in float64 on the CPU: the same numbers for every dtype and device.
            draw = torch.randn(own.shape, generator=generator, dtype=torch.float64).to(own)
            parts[name][index] = _as_filters(draw, own) if filter_normalised else draw
    if not filter_normalised:
        squares = torch.stack([part.double().flatten(1).square().sum(1) for part in parts.values()])
        lengths = squares.sum(0).sqrt()
        for part in parts.values():
            part /= lengths.to(part).reshape(-1, *[1] * (part.ndim - 1))
    scale = "filter-normalised" if filter_normalised else "of norm 1, not filter-normalised"
    labels = tuple(_label(block) for block in blocks)
    words = f"random directions in {' and '.join(dict.fromkeys(labels))}, {scale}, draw {seed}"
    return Directions(parts, words, labels, filter_normalised)


@contextmanager
def still(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Lend the parameters of a model that will come back exactly as it was.

    Within, the model is in evaluation mode and no graph is kept. At the end, also after an error,
    parameters and buffers have their old bits, each module its old mode, and the random numbers
    their old state.

    Yields:
        Copies of the parameters, by name.
    """
    modes = {module: module.training for module in model.modules()}
    kept = {name: p.detach().clone() for name, p in model.named_parameters()}
    buffers = {name: b.detach().clone() for name, b in model.named_buffers()}
    random = torch.get_rng_state()
    model.eval()
    try:
        with torch.no_grad():
            yield kept
    finally:
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(kept[name])
            for name, b in model.named_buffers():
                b.copy_(buffers[name])
        for module, mode in modes.items():
            module.training = mode
        torch.set_rng_state(random)


def move(
    model: nn.Module, start: dict[str, Tensor], directions: Directions, steps: Sequence[float]
) -> None:
    """Put the model at θ* + Σ stepᵢ dᵢ, where ``start`` holds θ*."""
    for name, part in directions.parts.items():
        # Through ``data``: no graph sees it, and a thousand points cost no checks of one.
        place = model.get_parameter(name).data.copy_(start[name])
        for step, along, moves in zip(steps, part, directions.moves[name], strict=True):
            if moves and step:
                place.add_(along, alpha=step)


def _ends(name: str, pattern: str) -> bool:
    return fnmatchcase(name, f"*.{pattern}")


def _as_filters(draw: Tensor, own: Tensor) -> Tensor:
    axes = tuple(range(1, own.ndim)) if own.ndim > 1 else tuple(range(own.ndim))
    wanted = torch.linalg.vector_norm(own, dim=axes, keepdim=True)
    return draw * (wanted / torch.linalg.vector_norm(draw, dim=axes, keepdim=True))


def _label(block: Block) -> str:
    return block if isinstance(block, str) else ", ".join(block)
