"""What models of sequences ask of their input: ids of the vocabulary, padding on the right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.tasks.host import words_of_rows


def check_ids(side: str, ids: Tensor, vocabulary: int | None = None) -> None:
    """Refuse ids that are not in the vocabulary.

    Args:
        side: what the ids are of, for the sentence.
        ids: shape ``(row, position)``.
        vocabulary: number of ids there are; ``None`` if any number will do.
    """
    if ids.ndim != 2 or 0 in ids.shape:
        raise AttnscopeError(
            f"{side} of shape {tuple(ids.shape)}: expected (row, position), one of each or more."
        )
    if ids.device.type != "cpu":
        return  # A look would wait for the device, which refuses such ids by itself.
    low, high = (int(end) for end in torch.aminmax(ids))
    if low < 0 or (vocabulary is not None and high >= vocabulary):
        end = "or more" if vocabulary is None else f"to {vocabulary - 1}"
        raise AttnscopeError(f"{side} with ids from {low} to {high}: expected 0 {end}.")


def row_lengths(shape: tuple[int, ...], mask: Tensor | None) -> Tensor | None:
    """Return the number of words of every row on the host, or ``None`` where nothing is padded.

    Args:
        shape: rows and positions.
        mask: where there is a word.
    """
    if mask is None:
        return None
    if mask.shape != shape:
        raise AttnscopeError(
            f"mask of shape {tuple(mask.shape)}: expected {tuple(shape)}, as the sequences."
        )
    if (known := words_of_rows(mask)) is not None:
        return torch.as_tensor(known, device="cpu")  # Nobody has to wait for a device.
    lengths = mask.sum(dim=1).cpu()
    empty = (lengths == 0).nonzero()
    if len(empty):
        raise AttnscopeError(
            f"row {int(empty[0])} of the mask has no word: expected at least one in every row."
        )
    if not bool((mask[:, :-1] >= mask[:, 1:]).all()):
        raise AttnscopeError("a mask with a word after a gap: expected padding on the right only.")
    return None if bool((lengths == shape[1]).all()) else lengths


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout off for the duration."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@contextmanager
def frozen(model: nn.Module) -> Iterator[None]:
    """Let no parameter ask for a gradient for the duration."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
