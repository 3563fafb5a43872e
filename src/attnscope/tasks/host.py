"""What is made on the host while a model is trained on a device.

A batch that is drawn afresh is drawn and counted by NumPy. :func:`on_host` lets all of it be done
with numbers of the host and puts the result on the device as a whole, so that nothing has to come
back to be looked at. Without a device it does nothing. :func:`padding` notes on a mask how many
words its rows have, which recurrent networks have to know on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

T = TypeVar("T")
NOTE = "words_of_rows"


class Host(Protocol):
    """Whoever has tensors on a device."""

    def on_host(self, make: Callable[[], Any]) -> Any:
        """Return what is made on the host, on the device."""


HOST: ContextVar[Host | None] = ContextVar("HOST", default=None)
"""Set by :func:`attnscope.engines.placement.placed`."""


def on_host(make: Callable[[], T]) -> T:
    """Return what ``make`` makes out of nothing that is on a device, where the run is."""
    host = HOST.get()
    return make() if host is None else host.on_host(make)


def padding(here: NDArray[np.bool_]) -> Tensor | None:
    """Return a mask, true where there is a word; ``None`` if there is one everywhere.

    >>> mask = padding(np.array([[True, True], [True, False]]))
    >>> mask is not None and words_of_rows(mask).tolist()
    [2, 1]
    """
    if here.all():
        return None
    mask = torch.from_numpy(here)
    setattr(mask, NOTE, here.sum(axis=1))
    return mask


def words_of_rows(mask: Tensor) -> NDArray[np.int64] | None:
    """Return how many words the rows of a mask have, if that was noted when it was made."""
    return getattr(mask, NOTE, None)


def carry_note(mask: Tensor, copy: Tensor) -> Tensor:
    """Note on a copy what is noted on a tensor."""
    if (words := words_of_rows(mask)) is not None:
        setattr(copy, NOTE, words)
    return copy
