"""Packages whose names are imported when they are first used, so that nobody waits for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


def imported(module: str) -> ModuleType:
    """Import a module of this package.

    Raises:
        AttnscopeError: it needs a package of an extra that is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        from attnscope.needs import missing

        said = missing(error)
        if said is None:
            raise
        raise said from None


def attach(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Args:
        package: its ``__name__``.
        homes: which names each of its modules offers.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(imported(f"{package}.{home[name]}"), name)

    def listed() -> list[str]:
        return sorted(home)

    return get, listed, sorted(home)
