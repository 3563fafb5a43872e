"""What is sent to a worker, and where the worker looks for modules.

Classes and functions travel by name where the worker can import their module, and by value where it
cannot: those of a script, of a notebook, of a file that was loaded under a made-up name.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle


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
    return [*found, str(Path(__file__).parents[2])]  # Last, where it takes nobody's place.


def dumps(value: object, path: list[str]) -> bytes:
    """Serialise a value for a process that looks for modules in ``path``."""
    file = io.BytesIO()
    _Pickler(file, path).dump(value)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    def __init__(self, file: io.BytesIO, path: list[str]) -> None:
        super().__init__(file)
        self.path = path
        self.importable = {"__main__": True}  # cloudpickle knows better

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type | FunctionType | ModuleType):
            name = str(obj.__name__ if isinstance(obj, ModuleType) else obj.__module__)
            if name in sys.modules and not self._is_importable(name):
                cloudpickle.register_pickle_by_value(sys.modules[name])
        return super().reducer_override(obj)

    def _is_importable(self, name: str) -> bool:
        """Whether the other process finds the same module under this name."""
        if name not in self.importable:
            self.importable[name] = self._is_found(name, sys.modules.get(name))
        return self.importable[name]

    def _is_found(self, name: str, module: ModuleType | None) -> bool:
        package = name.rpartition(".")[0]
        if package and not self._is_importable(package):
            return False
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in sys.stdlib_module_names or (package and file is None):
            return True  # A module without a file is made by its package.
        path = getattr(sys.modules.get(package), "__path__", []) if package else self.path
        specs = (finder.find_spec(name, path) for finder in sys.meta_path)
        found = next((spec for spec in specs if spec is not None), None)
        return found is not None and found.origin == file
