"""Attention that is heard while a model runs, and modules that run several times in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from torch import Tensor, nn

from attnscope.watching.attach_method import Detach, Keep, Keeper
from attnscope.watching.intercept import Interceptor
from attnscope.watching.moment import AttentionPoint, Handle


@dataclass(frozen=True, eq=False)
class CallPoint:
    """A call that computes attention, see :mod:`attnscope.watching.intercept`.

    Args:
        name: path of the module, and the number of the call if there are several in a pass.
        module: the innermost module that runs it.
        source: hears it.
        path: of the module.
        way: which function computes it.
        number: which of the module's calls in a forward pass it is.
        known: number of heads as seen in a forward pass.
        note: what else there is to say about it.
    """

    name: str
    module: nn.Module
    source: Interceptor
    path: str
    way: str
    number: int = 0
    known: int = 0
    note: str = ""

    @property
    def heads(self) -> int:
        """Number of heads; 0 if it is not known yet."""
        return self.known or self.source.heads_of(self.path)

    @property
    def kind(self) -> str:
        """What it is, and which function computes it."""
        return f"{type(self.module).__name__}, {self.way}"

    def attach(self, keep: Keep) -> Handle:
        """Have weights kept whenever the call is heard; see :class:`AttentionPoint`."""
        return Detach([self.source.keep(self.path, self.number, Keeper(self.name, keep))])


@dataclass(frozen=True, eq=False)
class RepeatedPoint:
    """One of the calls of a module that runs several times in a forward pass.

    Calls are counted from when it is attached, so it is attached anew for every pass.

    Args:
        point: the module.
        path: of the module.
        number: of the call, from 0.
        known: number of heads as seen in a forward pass.
        note: what else there is to say about it.
    """

    point: AttentionPoint
    path: str
    number: int
    known: int = 0
    note: str = ""

    @property
    def name(self) -> str:
        """Path of the module and number of the call."""
        return numbered(self.path, self.number)

    @property
    def module(self) -> nn.Module | None:
        """The module."""
        return getattr(self.point, "module", None)

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.known or self.point.heads

    @property
    def kind(self) -> str:
        """What it is."""
        return self.point.kind

    def attach(self, keep: Keep) -> Handle:
        """Have the weights of this call kept; see :class:`AttentionPoint`."""
        calls = 0

        def count(weights: Tensor) -> None:
            nonlocal calls
            calls += 1
            if calls - 1 == self.number:
                keep(weights)

        return self.point.attach(count)


def numbered(path: str, number: int) -> str:
    """Return the name of one call of a module that has several."""
    return f"{path}#{number}"


def path_of(name: str) -> tuple[str, int]:
    """Return the path of a point's module, and the number of its call."""
    path, _, number = name.partition("#")
    return path, int(number or 0)


@contextmanager
def listening(points: Sequence[AttentionPoint]) -> Iterator[None]:
    """Hear the calls of one forward pass, where points have some."""
    sources = {point.source for point in points if isinstance(point, CallPoint)}
    with ExitStack() as stack:
        for source in sources:
            stack.enter_context(source.listening())
        yield
