"""A fixed batch that a model is shown between the steps of its training, without disturbing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from attnscope.errors import AttnscopeError
from attnscope.watching.attach_call import listening, path_of
from attnscope.watching.moment import AttentionPoint, Evaluation
from attnscope.watching.undisturbed import bare, undisturbed

Batch = Tensor | Sequence[Any] | Mapping[str, Any] | Callable[[nn.Module], object]
"""What a model is called with: one argument, several, named ones; or a function of the model."""

REAL = ("attention_mask",)
PADDING = ("src_key_padding_mask", "key_padding_mask", "padding_mask")
"""Names of arguments that say which positions are words, and which are not."""
REAL_TARGET, PADDING_TARGET = ("decoder_attention_mask",), ("tgt_key_padding_mask",)
OTHER_EMBEDDINGS = ("pos", "type", "segment")
"""Parts of the names of embeddings that are not of words."""


class Probe:
    """The probe batch and the model that is shown it.

    Args:
        model: what is watched. The module inside a compiled or a data-parallel one is called.
        batch: a tensor, a tuple of arguments, a mapping of named arguments, or a function of the
            model. Tensors are moved to the model's device.

    Raises:
        AttnscopeError: the batch is none of these, or the model is not complete yet.
    """

    def __init__(self, model: nn.Module, batch: Batch) -> None:
        if not isinstance(batch, Tensor | Mapping | Sequence) and not callable(batch):
            raise AttnscopeError(
                f"probe of type {type(batch).__name__}: expected a tensor, a tuple of tensors, a "
                "dictionary of tensors, or a function of the model."
            )
        self.model, self.batch = bare(model), batch
        if any(nn.parameter.is_lazy(p) for p in self.model.parameters()):
            raise AttnscopeError(
                "the model has lazy modules whose size is not known yet: run it once on a batch "
                "before it is watched with a probe batch."
            )
        self.embedding = input_embedding(self.model)
        self.points: Sequence[AttentionPoint] = ()
        self._blocks: list[nn.Module | None] = []
        self._reach: dict[int, Tensor] = {}
        self._seen: dict[int, tuple[Tensor, Tensor]] = {}

    def watch(self, points: Sequence[AttentionPoint]) -> None:
        """Say where the model attends."""
        self.points = points
        self._blocks = [_block(self.model, point) for point in points]
        self._reach, self._seen = {}, {}

    def run(self) -> object:
        """Call the model as it is now, and return its answer.

        Raises:
            AttnscopeError: it does not take the batch.
        """
        tensors = chain(self.model.parameters(), self.model.buffers())
        device = next((tensor.device for tensor in tensors), None)
        batch = _moved(self.batch, device)
        try:
            if isinstance(batch, Tensor):
                return self.model(batch)
            if isinstance(batch, Mapping):
                return self.model(**batch)
            if isinstance(batch, Sequence):
                return self.model(*batch)
            return batch(self.model)
        except Exception as error:
            raise AttnscopeError(
                f"the model does not take the probe batch ({type(error).__name__}: {error}): "
                "expected what its forward takes, or a function of the model."
            ) from error

    def evaluate(self) -> Evaluation:
        """Evaluate the batch; the model and its training are left as they were."""
        attention: list[Tensor] = [torch.empty(0)] * len(self.points)
        outputs: dict[nn.Module, list[Tensor]] = {}
        ids: list[Tensor] = []
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(undisturbed(self.model))
            for index, point in enumerate(self.points):
                stack.callback(point.attach(_keep(attention, index)).remove)
            for block in {block: None for block in self._blocks if block is not None}:
                hook = block.register_forward_hook(_keep_output(outputs.setdefault(block, [])))
                stack.callback(hook.remove)
            if self.embedding is not None:
                hook = self.embedding.register_forward_pre_hook(
                    lambda _, given: ids.append(given[0])
                )
                stack.callback(hook.remove)
            stack.enter_context(listening(self.points))
            output = self.run()
        hidden = [self._hidden(index, outputs) for index in range(len(self.points))]
        masks = [self._masks(index, weights) for index, weights in enumerate(attention)]
        return Evaluation(
            attention,
            output,
            [_by_row(*item) for item in zip(hidden, attention, self.points, strict=True)],
            [visible for visible, _ in masks],
            [asking for _, asking in masks],
            ids[0] if ids and ids[0].ndim == 2 else None,
        )

    def through(self, change: Callable[[Tensor], Tensor]) -> object:
        """Return the model's answer when the word embeddings are changed on their way in.

        Gradients are as the caller has them; the parameters' own are not touched.

        Args:
            change: takes the embeddings ``(row, position, width)`` of the first look-up of a
                forward pass, and returns others.
        """
        if self.embedding is None:
            raise AttnscopeError("no input embedding was found in the model.")
        calls = 0

        def replace(_: nn.Module, __: Any, output: Tensor) -> Tensor | None:
            nonlocal calls
            calls += 1
            return change(output) if calls == 1 else None

        with undisturbed(self.model):
            hook = self.embedding.register_forward_hook(replace)
            try:
                return self.run()
            finally:
                hook.remove()

    @property
    def rows(self) -> int:
        """Rows of the batch; 0 if nobody knows."""
        parts: Any = self.batch
        if isinstance(parts, Mapping):
            parts = parts.values()
        elif isinstance(parts, Tensor) or callable(parts):
            parts = [parts]
        return next((len(x) for x in parts if isinstance(x, Tensor) and x.ndim), 0)

    @contextmanager
    def beginning(self) -> Iterator[Callable[[], object]]:
        """Give a function that runs the batch, while what the model keeps of it can be seen."""
        with torch.no_grad(), undisturbed(self.model):
            yield self.run

    def _hidden(self, index: int, outputs: Mapping[nn.Module, list[Tensor]]) -> Tensor:
        """Return what the block of a point gave in the pass, or in the call that is meant."""
        block = self._blocks[index]
        made = [] if block is None else outputs[block]
        number = path_of(self.points[index].name)[1]
        return made[min(number, len(made) - 1)] if made else torch.empty(0)

    def _masks(self, index: int, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return which keys queries see, and which queries are no padding.

        They see what they have ever attended to: the batch and its masks are fixed.
        """
        if weights.ndim != 4:
            nothing = torch.zeros(0, 0, 0, dtype=torch.bool)
            return nothing, nothing[0]
        now = (weights > 0).any(dim=1)
        before = self._reach.get(index)
        if before is not None and before.shape == now.shape:
            before = before.to(now.device)
            now |= before
            if torch.equal(now, before):
                return self._seen[index]
        self._reach[index] = now
        asking = self._asking(index, now)
        self._seen[index] = now & asking[..., None], asking
        return self._seen[index]

    def _asking(self, index: int, reach: Tensor) -> Tensor:
        some = reach.any(dim=-1)
        given = self._given_mask(self.points[index].name)
        if given is not None and given.shape == some.shape:
            return some & given.to(some.device)
        if reach.shape[1] == reach.shape[2]:
            # A word is seen by itself at least; what nobody ever sees is padding.
            return some & reach.any(dim=1)
        return some

    def _given_mask(self, name: str) -> Tensor | None:
        """Return which positions of a point's queries are words, as the batch says."""
        if not isinstance(self.batch, Mapping):
            return None
        of_target = any(part.startswith("decoder") for part in name.split(".")) and (
            getattr(getattr(self.model, "config", None), "is_encoder_decoder", False)
            or any(str(key).startswith(("decoder_", "tgt")) for key in self.batch)
        )
        real, padding = (REAL_TARGET, PADDING_TARGET) if of_target else (REAL, PADDING)
        for key in (*real, *padding):
            mask = self.batch.get(key)
            if isinstance(mask, Tensor) and mask.ndim == 2:
                return mask != 0 if key in real else ~_hides(mask)
        return None


def input_embedding(model: nn.Module) -> nn.Module | None:
    """Return the module that turns words into vectors, or ``None``."""
    try:
        found = model.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        found = None
    if isinstance(found, nn.Module):
        return found
    tables = [
        (name, part) for name, part in model.named_modules() if isinstance(part, nn.Embedding)
    ]
    of_words = [
        part
        for name, part in tables
        if not any(other in name.lower() for other in OTHER_EMBEDDINGS)
    ]
    return of_words[0] if of_words else None


def _hides(mask: Tensor) -> Tensor:
    return mask if mask.dtype == torch.bool else mask < 0


def _keep(kept: list[Tensor], index: int) -> Callable[[Tensor], None]:
    def keep(weights: Tensor) -> None:
        kept[index] = weights.detach()

    return keep


def _keep_output(kept: list[Tensor]) -> Callable[[nn.Module, Any, Any], None]:
    def keep(_: nn.Module, __: Any, output: Any) -> None:
        if isinstance(output, Mapping):
            output = next(iter(output.values()), None)
        if isinstance(output, tuple | list) and output:
            output = output[0]
        if isinstance(output, Tensor):
            kept.append(output.detach())

    return keep


def _block(model: nn.Module, point: AttentionPoint) -> nn.Module | None:
    """Return the block that holds an attention: its path up to the last number, or itself."""
    path = path_of(point.name)[0]
    parts = path.split(".")
    numbers = [place for place, part in enumerate(parts) if part.isdigit()]
    names = [".".join(parts[: numbers[-1] + 1])] if numbers else []
    for name in [*names, path]:
        try:
            block = model.get_submodule(name) if name else None
        except AttributeError:
            continue
        # Lists and dictionaries of modules are never called.
        if not isinstance(block, nn.ModuleDict | nn.ModuleList):
            return block
    return None


def _by_row(states: Tensor, weights: Tensor, point: AttentionPoint) -> Tensor:
    """Return states as ``(row, position, width)``, or nothing if they are not of these queries."""
    if states.ndim == 2:
        states = states[None]
    if states.ndim != 3 or weights.ndim != 4:
        return torch.empty(0)
    first = getattr(getattr(point, "module", None), "batch_first", True)
    wanted = (weights.shape[0], weights.shape[2])
    for candidate in (states, states.transpose(0, 1))[:: 1 if first else -1]:
        if tuple(candidate.shape[:2]) == wanted:
            return candidate
    return torch.empty(0)


def _moved(batch: Any, device: torch.device | None) -> Any:
    if isinstance(batch, Tensor):
        if device is None or batch.device == device:
            return batch
        try:
            return batch.to(device)
        except (RuntimeError, NotImplementedError) as error:
            raise AttnscopeError(
                f"the probe batch is on '{batch.device}' and the model on '{device}', and it "
                f"cannot be moved there ({error}): expected it on the model's device."
            ) from error
    if isinstance(batch, Mapping):
        return {name: _moved(item, device) for name, item in batch.items()}
    if isinstance(batch, list | tuple):
        return [_moved(item, device) for item in batch]
    return batch
