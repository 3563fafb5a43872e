"""A model that text can be shown to: what turns text into pieces, and what runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.attach_own import Function
from attnscope.watching.probe import input_embedding

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Encoded:
    """Texts as a model reads them.

    Args:
        batch: what the model is called with, by name, or one tensor.
        ids: numbers of the pieces, ``(text, position)``.
        places: where each piece lies in its text, ``(begin, end)`` a position; padding and special
            tokens have nothing between the two.
        texts: the texts that the places speak of.
        complete: which texts were read to their end.
    """

    batch: Mapping[str, Tensor] | Tensor
    ids: Tensor
    places: Sequence[Sequence[tuple[int, int]]]
    texts: Sequence[str]
    complete: Sequence[bool]


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A model and how it reads: of Hugging Face, or anybody's own.

    Args:
        name: what it is called in tables.
        model: any module; it is run in evaluation mode.
        encode: takes texts and the largest number of positions.
        attention: where it attends, as for :func:`attnscope.watch`: paths of modules or a function
            of the model. ``None`` to look for ``nn.MultiheadAttention`` and Hugging Face models.
        hidden: takes what the model returned, and gives the vectors of all positions at every
            depth, ``(text, position, width)`` each; without it only embeddings are compared.
        options: further arguments of the model, such as ``output_hidden_states=True``.
        fresh: makes the model with new random weights from a seed: the random twin.
        device: where it is run; :meth:`on` says another.
    """

    name: str
    model: nn.Module
    encode: Callable[[Sequence[str], int], Encoded]
    attention: str | Sequence[str] | Function | None = None
    hidden: Callable[[Any], Sequence[Tensor]] | None = None
    options: Mapping[str, Any] | None = None
    fresh: Callable[[int], LanguageModel] | None = None
    device: torch.device = CPU

    def on(self, device: torch.device) -> LanguageModel:
        """Return the model on a device, to which its own module is moved."""
        return (
            self
            if device == self.device
            else replace(self, model=self.model.to(device), device=device)
        )

    @property
    def embeddings(self) -> Tensor:
        """The vectors of all pieces before any layer, ``(piece, width)``.

        Raises:
            AttnscopeError: none were found.
        """
        found = input_embedding(self.model)
        weight = getattr(found, "weight", None)
        if not isinstance(weight, Tensor):
            raise AttnscopeError(
                f"'{self.name}' ({type(self.model).__name__}) has no input embedding that could be "
                "found: expected an nn.Embedding, or a method get_input_embeddings()."
            )
        return weight.detach()

    def run(self, encoded: Encoded) -> Any:
        """Call the model without gradients; texts are moved to where it is."""
        options = dict(self.options or {})
        with torch.no_grad():
            if isinstance(encoded.batch, Tensor):
                return self.model(encoded.batch.to(self.device), **options)
            batch = {name: tensor.to(self.device) for name, tensor in encoded.batch.items()}
            return self.model(**batch, **options)

    def twin(self, seed: int) -> LanguageModel:
        """Return the same model with new random weights, drawn on the CPU, where this one is.

        Raises:
            AttnscopeError: nobody said how to make it.
        """
        if self.fresh is None:
            raise AttnscopeError(
                f"'{self.name}' has no random twin: expected LanguageModel(fresh=...), a function "
                "of a seed that returns the model with new weights."
            )
        return self.fresh(seed).on(self.device)
