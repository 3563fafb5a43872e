"""How attention is read beside a model: what attach points of every kind share.

Forward hooks would do for most modules, but some models take another path when they see one (the
inference path of ``nn.TransformerEncoderLayer`` is left), and functions put into a module are taken
along when it is copied or saved. So a method of the *class* is replaced while one of its modules is
watched; modules that are not, copies and files are as they always were.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

Keep = Callable[[Tensor], None]

HEAD_NAMES = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads")


@dataclass(eq=False)
class Keeper:
    """Hands weights to whoever wants them, and lets no error reach the model.

    Args:
        name: of the attach point.
        keep: takes the weights.
    """

    name: str
    keep: Keep
    broken: bool = False

    def give(self, compute: Callable[[], Tensor], made: bool = False) -> None:
        """Compute weights without gradients and hand them on.

        If they are ``made`` already, and need only be taken, nothing is spent on gradients.

        After an error nothing more is tried: a warning says why, and empty weights take the place
        of those of the last call, so that nobody takes them for new ones.
        """
        if self.broken:
            return
        try:
            if made:
                weights = compute()
            else:
                with torch.no_grad():
                    weights = compute()
            weights = four_axes(weights.detach())
        except Exception as error:
            self._stop(error)
        else:
            self.keep(weights)

    def take(self, output: Any, path: Sequence[Any]) -> None:
        """Hand on weights at a known place of an output; :meth:`give` in half the calls."""
        if self.broken:
            return
        try:
            for key in path:
                output = output[key]
            weights: Tensor = output.detach()
            if weights.ndim != 4:
                weights = four_axes(weights)
        except Exception as error:
            self._stop(error)
        else:
            self.keep(weights)

    def _stop(self, error: Exception) -> None:
        self.broken = True
        self.keep(torch.empty(0))
        warnings.warn(
            f"attnscope: the attention of '{self.name}' cannot be read "
            f"({type(error).__name__}: {error}). The model goes on as it is.",
            stacklevel=3,
        )


def four_axes(weights: Tensor) -> Tensor:
    """Return weights as ``(row, head, query, key)``.

    Three axes are ``(row, query, key)`` of a single head, and two are ``(row, key)`` of a single
    query.

    Raises:
        ValueError: there are more axes or fewer.
    """
    if weights.ndim == 4:
        return weights
    if weights.ndim == 3:
        return weights[:, None]
    if weights.ndim == 2:
        return weights[:, None, None]
    raise ValueError(
        f"weights have shape {tuple(weights.shape)}, expected (row, head, query, key), "
        "(row, query, key) or (row, key)"
    )


def count_heads(module: nn.Module) -> int:
    """Return the number of heads that a module or its configuration says it has, 0 for unknown."""
    for place in (module, getattr(module, "config", None)):
        for name in HEAD_NAMES:
            count = getattr(place, name, None)
            if isinstance(count, int) and not isinstance(count, bool) and count > 0:
                return count
    return 0


@dataclass(eq=False)
class MethodPatch:
    """A method of a class that is replaced while one of its callers is watched.

    Args:
        find_class: returns the class; asked when the first watcher comes.
        method: name of the method.
        replace: makes the replacement from the original.
    """

    find_class: Callable[[], type]
    method: str
    replace: Callable[[Callable[..., Any]], Callable[..., Any]]
    watchers: dict[int, list[Any]] = field(default_factory=dict)
    original: Callable[..., Any] | None = None
    replacement: Callable[..., Any] | None = None

    def attach(self, module: nn.Module, watcher: Any) -> Detach:
        """Have a module watched until the handle is removed."""
        if not self.watchers:
            owner = self.find_class()
            self.original = getattr(owner, self.method)
            self.replacement = self.replace(self.original)
            setattr(owner, self.method, self.replacement)
        self.watchers.setdefault(id(module), []).append(watcher)
        # The handle holds the module, so that no other gets its identity.
        return Detach([partial(self.detach, module, watcher)])

    def of(self, module: nn.Module) -> list[Any]:
        """Return who watches a module; nobody does while it is being compiled."""
        # Traced code must not depend on who watches.
        if torch.compiler.is_compiling():
            return []
        return self.watchers.get(id(module), [])

    def detach(self, module: nn.Module, watcher: Any) -> None:
        """Remove a watcher; with the last one the method is put back."""
        left = [other for other in self.watchers.pop(id(module), []) if other is not watcher]
        if left:
            self.watchers[id(module)] = left
        owner = self.find_class()
        # Somebody may have replaced the method after us; theirs stays, and ours then does nothing.
        if not self.watchers and getattr(owner, self.method) is self.replacement:
            setattr(owner, self.method, self.original)


@dataclass(eq=False)
class Detach:
    """A handle that undoes what was attached, once."""

    steps: list[Callable[[], object]]

    def remove(self) -> None:
        """Leave everything as it was."""
        while self.steps:
            self.steps.pop()()
