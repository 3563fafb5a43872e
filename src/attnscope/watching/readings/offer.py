"""What readings are made of: what is known about a model, and what can be read off it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from attnscope.watching.moment import AttentionPoint, Evaluation, Moment, Reading
from attnscope.watching.probe import Probe

NO_ATTENTION = "attention, and none was found in the model"
NO_PROBE = "a probe batch: probe=..."


@dataclass(frozen=True, eq=False)
class WatchedModel:
    """A model and what its owner said about it.

    Args:
        model: what is watched.
        points: where it attends.
        probe: the probe batch, if there is one.
        first: its first evaluation.
        words: numbers of the words to follow, by name.
        topics: topic of each word number, -1 for none.
        targets: right answers for the probe batch.
        optimizer: what takes the steps, if it was given.
    """

    model: nn.Module
    points: Sequence[AttentionPoint] = ()
    probe: Probe | None = None
    first: Evaluation | None = None
    words: Mapping[str, int] = field(default_factory=dict)
    topics: np.ndarray | None = None
    targets: Tensor | None = None
    optimizer: torch.optim.Optimizer | None = None

    @property
    def lacks_attention(self) -> str:
        """What is missing for readings of attention; empty if nothing is."""
        return "" if self.points else NO_ATTENTION

    @property
    def lacks_words(self) -> str:
        """What is missing for readings of attention between the words of the probe batch."""
        if self.probe is None:
            return self.lacks_attention or NO_PROBE
        no_ids = self.first is None or self.first.ids is None
        return self.lacks_attention or (
            "a model that reads word ids through an nn.Embedding" if no_ids else ""
        )


@dataclass(frozen=True, eq=False)
class Offer:
    """A reading that has a name.

    Args:
        reading: how it is read.
        usual: whether it is recorded when nothing was asked for.
        lacks: what is missing for it, in words; empty if it can be read.
        apart: when nothing was asked for it is read at every so many readings only, because it
            costs more than others or changes slowly.
        labels: names of the entries of axes, for readings of some of them only.
    """

    reading: Reading
    usual: bool = False
    lacks: str = ""
    apart: int = 1
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Layer:
    """Attention of one point, as arrays.

    Args:
        weights: ``(row, head, query, key)``.
        visible: ``(row, query, key)``.
        asking: ``(row, query)``.
    """

    weights: np.ndarray
    visible: np.ndarray
    asking: np.ndarray


_MADE: WeakKeyDictionary[Evaluation, list[Layer | None]] = WeakKeyDictionary()


def layers(evaluation: Evaluation) -> list[Layer | None]:
    """Return the attention of every point; ``None`` where there is none yet."""
    if evaluation not in _MADE:
        _MADE[evaluation] = _layers(evaluation)
    return _MADE[evaluation]


def _layers(evaluation: Evaluation) -> list[Layer | None]:
    made: list[Layer | None] = []
    for index, weights in enumerate(evaluation.attention):
        if weights.ndim != 4:
            made.append(None)
            continue
        see = evaluation.visible[index] if evaluation.visible else (weights > 0).any(dim=1)
        ask = evaluation.asking[index] if evaluation.asking else see.any(dim=-1)
        made.append(Layer(array(weights), array(see), array(ask)))
    return made


def array(tensor: Tensor) -> np.ndarray:
    """Return a tensor as an array; numbers of half precision become single."""
    tensor = tensor.detach()
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return np.asarray(tensor.cpu().numpy())


def stacked(parts: Sequence[np.ndarray | None]) -> Tensor | None:
    """Stack what layers have; NaN where one has less than another, ``None`` if none has any."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    shape = tuple(max(sizes) for sizes in zip(*(part.shape for part in known), strict=True))
    whole = np.full((len(parts), *shape), np.nan, dtype=np.result_type(*known))
    for index, part in enumerate(parts):
        if part is not None:
            own = tuple(slice(n) for n in part.shape)
            whole[index : index + 1][(slice(None), *own)] = part
    return torch.from_numpy(whole)


def per_layer(of: Callable[[Layer], np.ndarray | None]) -> Callable[[Moment], Tensor | None]:
    """Return a reading that is the same function of every layer's attention."""
    return lambda moment: stacked(
        [None if layer is None else of(layer) for layer in layers(moment.evaluation)]
    )
