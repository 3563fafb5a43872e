"""The experiments there are: those of the papers, installed ones, and files of your own.

A study of a paper is found by where it lies: ``studies/lu2021/sen.py``, or a folder of that name,
is ``lu2021.sen``. Nothing is imported to list them, and nothing has to be registered. A package
offers studies by entry points of the group ``attnscope.studies``. The name in a run's folder is
only ever looked up among these and among the classes that this process has defined; it is never
imported.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from attnscope import studies
from attnscope.errors import AttnscopeError, nearest
from attnscope.lazy import imported

if TYPE_CHECKING:
    import xarray as xr

    from attnscope.experiment import Experiment

__all__ = ["load", "names", "of_file", "of_paper", "of_tree", "papers", "summary"]

HERE = Path(studies.__file__).parent
GROUP = "attnscope.studies"
"""Entry points of packages that offer studies."""
WATCHED = "watched"
"""What reads the runs of a model that was watched."""
RENAMED = {"attnscope.watching.reading:Watched": WATCHED}
"""What experiments were once called; run folders remember."""
SUCCESSORS = {
    "attnscope.lab.worlds.lu2021:TopicWordsPlay": "lu2021.topic_words",
    "attnscope.lab.worlds.li2023:TopicDocumentsPlay": "li2023.topic_documents",
    "attnscope.lab.worlds.song2024:RegressionPlay": "song2024.regression",
    "attnscope.lab.worlds.snell2021:WordsFirstPlay": "snell2021.words_first",
}
"""Studies that took the place of older ones and record other things."""


def names() -> list[str]:
    """Return the names of all studies that can be run by name, sorted."""
    return sorted([*_places(), *(point.name for point in entry_points(group=GROUP))])


def papers() -> list[str]:
    """Return the citation keys of the papers that there are studies of, sorted."""
    return sorted({name.partition(".")[0] for name in names()})


def of_paper(paper: str) -> list[str]:
    """Return the names of the studies of a paper.

    Raises:
        AttnscopeError: there are none; the nearest paper is suggested.
    """
    found = [name for name in names() if name.partition(".")[0] == paper]
    if not found:
        raise AttnscopeError(
            f"there are no studies of '{paper}'.{nearest(paper, papers())} "
            f"Expected one of: {', '.join(papers())}."
        )
    return found


def summary(name: str) -> str:
    """Return the first line that a study says of itself, without importing it if it is ours."""
    place = _places().get(name)
    if place is None:
        return (load(name).__doc__ or "").strip().split("\n", 1)[0]
    tree = ast.parse(place.read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").split("\n", 1)[0]


def load(name: str) -> type[Experiment]:
    """Return the study called ``name``, or one of your own: ``mine.py``, ``module:Class``.

    The name of the paper can be left out where one paper alone has such a study: ``sen``. Only what
    a person asks for may be loaded so: it is imported.

    Raises:
        AttnscopeError: there is none of that name; the nearest one is suggested.
    """
    path, _, wanted = name.partition(":")
    if path.endswith(".py"):
        return of_file(Path(path), wanted)
    if wanted or ":" in name:
        return _of_module(path, wanted, name)
    if name in _places():
        return _only(imported(f"{studies.__name__}.{name}"), name)
    for point in entry_points(group=GROUP):
        if point.name == name:
            return _entry(point)
    known = names()
    short = [each for each in known if each.partition(".")[2] == name]
    if len(short) == 1:
        return load(short[0])
    if short:
        raise AttnscopeError(
            f"'{name}' is a study of several papers: expected one of {', '.join(short)}."
        )
    if name in papers():
        raise AttnscopeError(
            f"'{name}' is a paper: expected one of its studies, {', '.join(of_paper(name))}."
        )
    raise AttnscopeError(
        f"there is no study '{name}'.{nearest(name, known)} Expected a file, such as mine.py, or "
        "one of those that `attnscope list` lists."
    )


def of_file(path: Path, wanted: str = "") -> type[Experiment]:
    """Return the study that a file defines.

    Args:
        path: the file.
        wanted: name of the class, where the file defines several.

    Raises:
        AttnscopeError: the file is not there, does not import, or defines no study or several.
    """
    if not path.is_file():
        raise AttnscopeError(f"'{path}' is not there: expected a Python file with a study.")
    # One name a file, so that its studies keep their name and two files do not meet.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:6]
    name = f"{path.stem}_{digest}"
    module = sys.modules.get(name)
    if module is None:
        module = _imported(path, name)
    if wanted and not hasattr(module, wanted):
        raise AttnscopeError(f"'{path}' defines no '{wanted}': expected the name of a study in it.")
    return _only(module, str(path), wanted)


def of_tree(tree: xr.DataTree) -> Experiment:
    """Return the experiment, with its spec, that a trajectory came from.

    Raises:
        AttnscopeError: it is not there any more; the trajectory can still be read and exported.
    """
    spec: dict[str, Any] = json.loads(tree.attrs["spec"])
    return known(tree.attrs["study"]).from_json(spec)


def current(name: str) -> str:
    """Return what an experiment is called now that a run's folder may name otherwise."""
    return RENAMED.get(name, name)


def known(name: str) -> type[Experiment]:
    """Return the experiment that a run's folder names; nothing of a stranger's is imported."""
    from attnscope.experiment import KNOWN

    name = current(name)
    if name == WATCHED:
        from attnscope.watched import Watched

        return Watched
    if name in KNOWN:
        return KNOWN[name]
    if name in names():
        return load(name)
    instead = f" Its place has been taken by {SUCCESSORS[name]}." if name in SUCCESSORS else ""
    raise AttnscopeError(
        f"the study '{name}' is not here, so its claims and figures cannot be made; what it "
        f"recorded can be read and exported.{instead} Expected a study of this version, of an "
        "installed package, or one that was loaded before (attnscope run FILE.py, or its class in "
        "Python)."
    )


def _places() -> dict[str, Path]:
    """Return the file that describes each study of a paper, by the study's name."""
    found = {f"{f.parent.name}.{f.stem}": f for f in HERE.glob("*/*.py")}
    found |= {f"{f.parts[-3]}.{f.parts[-2]}": f for f in HERE.glob("*/*/__init__.py")}
    return {name: f for name, f in found.items() if not name.split(".")[1].startswith("_")}


def _entry(point: Any) -> type[Experiment]:
    from attnscope.experiment import Experiment

    try:
        found = point.load()
    except Exception as error:
        raise AttnscopeError(
            f"the study '{point.name}' of an installed package cannot be imported "
            f"({type(error).__name__}: {error})."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Experiment)):
        raise AttnscopeError(f"'{point.name}' of an installed package is {found!r}, not a study.")
    return found


def _of_module(module: str, wanted: str, name: str) -> type[Experiment]:
    from attnscope.experiment import Experiment

    try:
        found = getattr(importlib.import_module(module), wanted)
    except (ImportError, ValueError, AttributeError) as error:
        raise AttnscopeError(
            f"there is no study '{name}' ({error}). Expected module:Class, with a module that "
            "Python can import."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Experiment)):
        raise AttnscopeError(f"'{name}' is {found!r}: expected a class that inherits Study.")
    return found


def _imported(path: Path, name: str) -> ModuleType:
    from attnscope.experiment.base import FILE

    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    setattr(module, FILE, str(path))
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        found.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        line = getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise AttnscopeError(
            f"'{path}' cannot be imported ({type(error).__name__}{where}: {error}): expected a "
            "Python file that defines a study."
        ) from error
    finally:
        sys.path.remove(folder)
    return module


def _only(module: ModuleType, name: str, wanted: str = "") -> type[Experiment]:
    """Return the one study that a module defines."""
    from attnscope.experiment import Experiment

    own = {
        value.__name__: value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, Experiment)
        and (
            value.__module__ == module.__name__
            or value.__module__.startswith(f"{module.__name__}.")
        )
    }
    if wanted:
        own = {key: value for key, value in own.items() if key == wanted}
    # A base that others are made of is not what is meant.
    last = [
        v for v in own.values() if not any(v is not w and issubclass(w, v) for w in own.values())
    ]
    if not last:
        raise AttnscopeError(f"'{name}' defines no study: expected a class that inherits Study.")
    if len(last) > 1:
        found = ", ".join(sorted(each.__name__ for each in last))
        raise AttnscopeError(
            f"'{name}' defines several studies ({found}): expected one of them to be named, as in "
            f"{name}:{last[0].__name__}."
        )
    return last[0]
