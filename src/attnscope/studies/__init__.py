"""One module per figure or table of a paper, under its citation key.

A study is found by where its file lies: ``studies/lu2021/sen.py`` is ``lu2021.sen``. Nothing is
imported to list them, and nothing has to be registered.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from attnscope.errors import AttnscopeError, nearest

if TYPE_CHECKING:
    import xarray as xr

    from attnscope.studies.base import Study

__all__ = ["load", "names", "of_tree", "summary"]

_HERE = Path(__file__).parent


def names() -> list[str]:
    """Return the names of all studies, sorted."""
    files = _HERE.glob("*/*.py")
    return sorted(f"{f.parent.name}.{f.stem}" for f in files if not f.stem.startswith("_"))


def summary(name: str) -> str:
    """Return the first line of a study's docstring, without importing it."""
    paper, _, study = name.partition(".")
    tree = ast.parse((_HERE / paper / f"{study}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").split("\n", 1)[0]


def load(name: str) -> type[Study]:
    """Import the study called ``name``.

    Raises:
        AttnscopeError: there is none of that name; the nearest one is suggested.

    A study of one's own is ``module:Class``.
    """
    from attnscope.studies.base import Study

    if ":" in name:
        module_name, _, attribute = name.partition(":")
        try:
            found: type[Study] = getattr(importlib.import_module(module_name), attribute)
        except (ImportError, ValueError, AttributeError) as error:
            raise AttnscopeError(
                f"there is no study '{name}' ({error}). Expected module:Class, with a module that "
                "Python can import."
            ) from error
        return found
    known = names()
    if name not in known:
        raise AttnscopeError(
            f"there is no study '{name}'.{nearest(name, known)} "
            f"Expected one of: {', '.join(known)}."
        )
    module = importlib.import_module(f"{__name__}.{name}")
    for value in vars(module).values():
        local = getattr(value, "__module__", "") == module.__name__
        if local and isinstance(value, type) and issubclass(value, Study):
            return value
    raise AttnscopeError(f"{module.__name__} defines no Study.")


def of_tree(tree: xr.DataTree) -> Study:
    """Return the study, with its spec, that a trajectory came from."""
    import json

    return load(tree.attrs["study"]).from_json(json.loads(tree.attrs["spec"]))
