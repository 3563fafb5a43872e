"""What a process holds that does not record."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from torch import nn

from attnscope.trajectory.folder import RunFolder
from attnscope.watching.scope import Scope


class SilentScope(Scope):
    """A scope that hears everything and does nothing, because another process records.

    Args:
        model: what another process watches.
        out: the folder that was asked for.
    """

    def __init__(self, model: nn.Module, out: str | Path) -> None:
        folder = RunFolder(Path(out))
        super().__init__(model, folder, (), points=(), evaluate=None, optimizer=None, spec={})
        self.status = "another process records"

    def begin(self) -> Self:
        """Do nothing."""
        return self
