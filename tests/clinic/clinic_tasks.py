"""Tasks that need attention: what comes two words later, which word is there, which patch, turn."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

WORDS, LENGTH, CLASSES, PATCH = 16, 16, 4, 12
Sample = tuple[tuple[Tensor, ...], Tensor]
"""What a model is called with, and the right answers."""


def later(count: int) -> Sample:
    """Words of which each is a fixed function of the word two places before, nine times of ten."""
    ids = torch.randint(0, WORDS, (count, LENGTH + 1))
    for place in range(2, LENGTH + 1):
        told = (5 * ids[:, place - 2] + 3) % WORDS
        ids[:, place] = torch.where(torch.rand(count) < 0.9, told, ids[:, place])
    return (ids[:, :-1],), ids[:, 1:]


def repeated(count: int) -> Sample:
    """Random words that come back in the same order: only an induction head can know them."""
    half = torch.randint(0, WORDS, (count, LENGTH // 2 + 1))
    ids = torch.cat([half[:, :-1], half], dim=1)
    return (ids[:, :-1],), ids[:, 1:]


def finding(count: int, noise: float = 0.0) -> Sample:
    """Rows with one word of four among others; the answer is which one."""
    ids = torch.randint(CLASSES, WORDS, (count, LENGTH))
    labels = torch.randint(0, CLASSES, (count,))
    ids[torch.arange(count), torch.randint(0, LENGTH, (count,))] = labels
    wrong = torch.rand(count) < noise
    return (ids,), torch.where(wrong, torch.randint(0, CLASSES, (count,)), labels)


def patches(count: int) -> Sample:
    """Sixteen noisy patches, one of which shows one of four patterns."""
    generator = torch.Generator().manual_seed(0)
    patterns = 2.0 * torch.randn(CLASSES, PATCH, generator=generator)
    labels = torch.randint(0, CLASSES, (count,))
    x = torch.randn(count, 16, PATCH)
    x[torch.arange(count), torch.randint(0, 16, (count,))] += patterns[labels]
    return (x,), labels


def turning(count: int) -> Sample:
    """A row of eight words, to be said backwards; word 16 begins the answer."""
    source = torch.randint(0, WORDS, (count, 8))
    target = source.flip(1)
    begun = torch.cat([torch.full((count, 1), WORDS), target[:, :-1]], dim=1)
    return (source, begun), target


TASKS: dict[str, Callable[[int], Sample]] = {
    "decoder": later,
    "encoder": finding,
    "vision": patches,
    "translator": turning,
}
