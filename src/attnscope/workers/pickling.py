"""What is sent to a worker, and where the worker looks for modules.

Classes and functions travel by name where the worker can import their module, and by value where it
cannot: those of a script, of a notebook, of a file that was loaded under a made-up name.
"""

from __future__ import annotations

import io
import os
import sys
import sysconfig
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

ENDS = (".", f"{os.sep}__init__.")
"""What follows the name of a module, and of a package, in the name of its file."""

PACKAGES = ("site-packages", "dist-packages")
"""Names of folders that packages are installed in."""


def search_path() -> list[str]:
    """Return this process's ``sys.path`` without the current directory.

    A file there must not take the place of a module of the same name. The folder of a script stays,
    for the study may lie beside it.
    """
    here = os.path.realpath(os.curdir)
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    own = os.path.realpath(os.path.dirname(script)) if script else None
    first = sys.path[0] if sys.path and os.path.isabs(sys.path[0]) else None
    found = [
        os.path.abspath(place)
        for place in sys.path
        if os.path.realpath(place) != here or (place == first and here == own)
    ]
    ours = os.path.abspath(Path(__file__).parents[2])
    return [*found, ours]  # Last, where it takes nobody's place.


def installed_path() -> list[str]:
    """Return the part of ``sys.path`` that another computer has too: what is installed.

    What lies elsewhere, such as the folder of a script, is not there, and so travels by value.
    """
    homes = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    ours = os.path.abspath(Path(__file__).parents[2])
    return [
        place
        for place in search_path()
        if place == ours or place.startswith(homes) or Path(place).name in PACKAGES
    ]


def dumps(value: object, path: list[str]) -> bytes:
    """Serialise a value for a process that looks for modules in ``path``."""
    file = io.BytesIO()
    _Pickler(file, path).dump(value)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, path: list[str]) -> None:
        super().__init__(file)
        self.path = path

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType | ModuleType):
            name = obj.__name__ if isinstance(obj, ModuleType) else obj.__module__
            module = sys.modules.get(name)
            if isinstance(module, ModuleType) and not self._is_importable(name, module):
                cloudpickle.register_pickle_by_value(module)
        return super().reducer_override(obj)

    def _is_importable(self, name: str, module: ModuleType) -> bool:
        """Whether a module lies where its name says, so that the other process finds it."""
        file = getattr(module, "__file__", None)
        made = "." in name and module.__spec__ is None  # by its package, which makes it again
        if file is None or made or module.__name__ != name or name == "__main__":
            return True
        starts = [os.path.join(place, name.replace(".", os.sep)) for place in self.path]
        found = tuple(start + end for start in starts for end in ENDS)
        return os.path.abspath(file).startswith(found)
