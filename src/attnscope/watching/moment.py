"""What can be read at one step of somebody's training, and what a reading is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, Protocol

from torch import Tensor, nn

Need = Literal["attention", "probe", "gradients", "before"]
"""What has to be prepared for a reading: attention weights, the model's answer to the probe
batch, gradients of this step, or the weights before it."""


class Handle(Protocol):
    """What ends an attachment."""

    def remove(self) -> None:
        """Leave the module as it was."""


class AttentionPoint(Protocol):
    """A place in a model where attention is computed."""

    @property
    def name(self) -> str:
        """Path of the module."""

    @property
    def heads(self) -> int:
        """Number of heads; 0 if it is not known before the first forward pass."""

    @property
    def kind(self) -> str:
        """What it is, in words, such as ``"nn.MultiheadAttention"``."""

    def attach(self, keep: Callable[[Tensor], None]) -> Handle:
        """Have ``keep(weights)`` called whenever the module runs, until the handle is removed.

        Weights have shape ``(row, head, query, key)``. The module's own output does not change by a
        bit, whatever path it takes.
        """


@dataclass(eq=False)
class Moment:
    """A step of training, as readings find it.

    What costs something is made when it is first asked for, and once for all readings.

    Args:
        model: the watched model, after the step.
        step: number of steps taken.
        loss: the loss that the step was taken on; NaN before the first.
        points: where the model attends.
        evaluate: evaluates the probe batch, or takes what the last forward pass left.
        gradients: of the step, by parameter name; empty before the first.
        before: weights before the step, by parameter name; empty before the first.
    """

    model: nn.Module
    step: int
    loss: float
    points: Sequence[AttentionPoint]
    evaluate: Callable[[], Evaluation]
    gradients: Mapping[str, Tensor] = field(default_factory=dict)
    before: Mapping[str, Tensor] = field(default_factory=dict)
    evaluating: float = field(default=0.0, init=False, repr=False)
    """Seconds that the evaluation took; 0 if nobody asked for it."""
    _evaluation: Evaluation | None = field(default=None, init=False, repr=False)
    _parameters: dict[str, Tensor] | None = field(default=None, init=False, repr=False)

    @property
    def evaluation(self) -> Evaluation:
        """The model's answer to the probe batch."""
        # A cached_property takes a lock, and this is for every step.
        if self._evaluation is None:
            begun = perf_counter()
            self._evaluation = self.evaluate()
            self.evaluating = perf_counter() - begun
        return self._evaluation

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The model's parameters by name."""
        if self._parameters is None:
            self._parameters = dict(self.model.named_parameters())
        return self._parameters

    @property
    def attention(self) -> Sequence[Tensor]:
        """Attention weights of every point, each ``(row, head, query, key)``."""
        return self.evaluation.attention


@dataclass(eq=False)
class Evaluation:
    """One evaluation of a model.

    Args:
        attention: weights of every point, in the order of the points.
        output: what the model returned; ``None`` for the training batch.
        hidden: outputs of the blocks that hold the attention, ``(row, position, width)``, in the
            same order; empty tensors where there is none.
        visible: which keys a query may attend to, ``(row, query, key)``, in the same order; empty
            for the training batch.
        asking: which queries are no padding, ``(row, query)``, in the same order; likewise.
        ids: words that went into the model, ``(row, position)``, if it reads words.
    """

    attention: Sequence[Tensor]
    output: object = None
    hidden: Sequence[Tensor] = ()
    visible: Sequence[Tensor] = ()
    asking: Sequence[Tensor] = ()
    ids: Tensor | None = None


@dataclass(frozen=True)
class Reading:
    """A quantity that can be read off a step.

    Args:
        name: the variable's name in the trajectory.
        read: a function of the moment that returns a tensor of fixed shape or a number, or
            ``None`` when there is nothing to read; that is NaN.
        dims: names of the tensor's axes.
        needs: what has to be prepared for it.
        unit: what the number counts, empty for a pure number.
        meaning: a sentence or a formula, kept with the data.
        plain: it only hands on what is there, so nobody has to keep gradients from being recorded.
        of: names of the parameters whose weights before the step it needs, if it needs them; all
            unless given.
        coords: labels of axes by their name, such as ``{"matrix": ("Q", "K", "V", "O")}``. Layers,
            matrices, blocks and words are labelled without it.
        left: it is the weights of all points as they are, so that points may write them down.
    """

    name: str
    read: Callable[[Moment], Tensor | float | None]
    dims: tuple[str, ...] = ()
    needs: frozenset[Need] = frozenset()
    unit: str = ""
    meaning: str = ""
    plain: bool = False
    of: frozenset[str] = frozenset()
    coords: Mapping[str, Sequence[str | int | float]] = field(default_factory=dict, hash=False)
    left: bool = False
