"""A spec by the flat names of its settings: flags, manifests, sweeps and sliders all use these.

A spec is a frozen dataclass. Where a field is itself one, such as a task or a training, its fields
are settings of the spec: ``--m`` on the command line is the ``m`` of a study's ``task``. The kind
of a training is the setting ``engine``.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import re
import textwrap
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from attnscope.bounds import hints
from attnscope.errors import AttnscopeError, nearest

S = TypeVar("S")
ENGINE = "engine"
"""The setting that says which kind of training it is."""


class Flat(type):
    """Classes of specs that can be made with the flat names of their settings: ``Sen(m=30)``."""

    def __call__(cls, *values: Any, **given: Any) -> Any:
        """Make a spec; names that are not its own fields are those of its task or training."""
        own = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        if values or given.keys() <= own:
            return super().__call__(*values, **given)
        return changed(super().__call__(), given)


@dataclass(frozen=True)
class Setting:
    """One setting: its value, its type, and where it stands in the spec."""

    name: str
    value: Any
    kind: Any
    meaning: str
    within: str = ""


def settings(spec: Any) -> dict[str, Setting]:
    """Return the settings of a spec by name, in the order of its fields.

    Raises:
        AttnscopeError: two of them have one name.
    """
    found: dict[str, Setting] = {}

    def add(setting: Setting) -> None:
        if setting.name in found:
            raise AttnscopeError(
                f"{type(spec).__name__} has two settings called '{setting.name}': expected each "
                "name once, in its fields and in those of its task and its training."
            )
        found[setting.name] = setting

    for field in dataclasses.fields(spec):
        value = getattr(spec, field.name)
        if not _is_spec(value):
            kind = _hints(spec).get(field.name, type(value))
            add(Setting(field.name, value, kind, meaning(type(spec), field.name)))
            continue
        if field.name == "training":
            kinds = [_kind_name(each) for each in _alternatives(spec, field.name)]
            kind = typing.Literal[tuple(kinds or [_kind_name(type(value))])]
            add(Setting(ENGINE, _kind_name(type(value)), kind, "How the model is trained.", "*"))
        for name in _own_settings(value):
            kind = _hints(value).get(name, Any)
            add(Setting(name, getattr(value, name), kind, meaning(type(value), name), field.name))
    return found


def flat(spec: Any) -> dict[str, Any]:
    """Return the values of all settings as JSON values, by name."""
    return {
        name: list(setting.value) if isinstance(setting.value, tuple) else setting.value
        for name, setting in settings(spec).items()
    }


def changed(spec: S, changes: Mapping[str, Any], *, old: bool = False) -> S:
    """Return the spec with some settings changed, by their flat names.

    Old spellings that a study or its training declares in ``renamed`` are understood.

    Args:
        spec: what is changed.
        changes: settings and their values.
        old: an older version wrote them down: what is no longer a setting is passed over.

    Raises:
        AttnscopeError: there is no such setting, or a value is out of its bounds.
    """
    wanted = dict(changes)
    whole = [name for name in wanted if _is_spec(getattr(spec, name, None))]
    own: dict[str, Any] = {name: wanted.pop(name) for name in whole}
    for name, value in own.items():
        if not _is_spec(value):
            kind = type(getattr(spec, name)).__name__
            raise AttnscopeError(f"{name} = {str(value)[:80]!r}: expected a {kind}.")
    training = own.get("training", getattr(spec, "training", None))
    if training is not None:
        engine = wanted.pop(ENGINE, None)
        own["training"] = training = _of_kind(spec, training, engine, old)
    wanted = _renamed(spec, training, wanted, old)
    known = settings(dataclasses.replace(spec, **own) if own else spec)  # type: ignore[type-var]
    inner: dict[str, dict[str, Any]] = {}
    for name, value in wanted.items():
        if name not in known:
            raise AttnscopeError(
                f"{_title(spec)} has no field '{name}'.{nearest(name, known)} "
                f"Expected some of: {', '.join(known)}."
            )
        value = tuple(value) if isinstance(value, list) else value
        if known[name].within:
            inner.setdefault(known[name].within, {})[name] = value
        else:
            own[name] = value
    for field, values in inner.items():
        own[field] = dataclasses.replace(own.get(field, getattr(spec, field)), **values)
    return dataclasses.replace(spec, **own)  # type: ignore[type-var]


def renamings(spec: Any) -> dict[str, str | None]:
    """Return old spellings of settings with the new ones; ``None`` for what is gone."""
    return {
        **getattr(type(getattr(spec, "training", None)), "renamed", {}),
        **getattr(type(spec), "renamed", {}),
    }


def product(one: Any, other: Any) -> float:
    """Multiply two settings of an older manifest, which may hold anything.

    Raises:
        AttnscopeError: they are no numbers.
    """
    try:
        return float(one) * float(other)
    except (TypeError, ValueError, OverflowError):
        raise AttnscopeError(
            f"{str(one)[:40]!r} × {str(other)[:40]!r} in an older spec: expected two numbers."
        ) from None


@cache
def meanings(owner: Any) -> dict[str, str]:
    """Return what each field of a class means: the text below it, or its line in the docstring."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        found |= _arguments(base.__doc__ or "")
    for base in reversed(owner.__mro__):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError, SyntaxError):
            continue
        body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
        for field, text in itertools.pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def _arguments(text: str) -> dict[str, str]:
    """Return the entries of a docstring's section ``Args:``."""
    section = re.search(r"^ *Args:\n(.*?)(?:\n\s*\n|\Z)", text, re.DOTALL | re.MULTILINE)
    if section is None:
        return {}
    entries = re.split(r"^(\w+): ", textwrap.dedent(section[1]), flags=re.MULTILINE)[1:]
    found = {}
    for name, words in zip(entries[::2], entries[1::2], strict=True):
        # Its first sentence: the rest is for those who read the class.
        text = re.split(r"(?<=[.:;]) (?=[A-Z])", " ".join(words.split()))[0]
        found[name] = text[:1].upper() + text[1:]
    return found


def meaning(owner: Any, name: str) -> str:
    """Return the text below a field."""
    return meanings(owner).get(name, "")


def _is_spec(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _hints(value: Any) -> dict[str, Any]:
    owner: Any = type(value)
    return hints(owner)


def _own_settings(value: Any) -> list[str]:
    names = [field.name for field in dataclasses.fields(value) if field.init]
    return [name for name in getattr(type(value), "spec", names) if name in names]


def _kind_name(kind: type) -> str:
    return kind.__name__.lower()


def _alternatives(spec: Any, field: str) -> list[type]:
    """Return the classes that a field may hold, by its annotation."""
    kind = _hints(spec).get(field)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [each for each in typing.get_args(kind) if isinstance(each, type)]
    return [kind] if isinstance(kind, type) else []


def _of_kind(spec: Any, training: Any, engine: Any, old: bool) -> Any:
    """Return the training as the engine that is asked for, with what both have in common."""
    if engine is None or engine == _kind_name(type(training)):
        return training
    kinds = {_kind_name(each): each for each in _alternatives(spec, "training")}
    if not isinstance(engine, str) or engine not in kinds:
        # What once had to be said, and could be nothing else, is no longer said.
        if old:
            return training
        known = [repr(name) for name in kinds] or [repr(_kind_name(type(training)))]
        raise AttnscopeError(f"engine = {str(engine)[:80]!r}: expected {' or '.join(known)}.")
    kind: Any = kinds[engine]
    shared = [name for name in _own_settings(training) if name in kind.spec]
    return kind(**{name: getattr(training, name) for name in shared})


def _renamed(spec: Any, training: Any, wanted: dict[str, Any], old: bool) -> dict[str, Any]:
    fresh: dict[str, Any] = {}
    once = wanted.get("lr") is not None and wanted.get("epochs") is not None
    if getattr(training, "until", None) is not None and once:
        # Runs without steps once ended at learning rate × epochs, as a matter of form.
        fresh["until"] = product(wanted.pop("lr"), wanted.pop("epochs"))
    names = {**getattr(type(training), "renamed", {}), **getattr(type(spec), "renamed", {})}
    known = {field.name for field in dataclasses.fields(spec)}
    known |= set(_own_settings(training)) if training is not None else set()
    for name, value in wanted.items():
        new = names.get(name, name) if name not in known else name
        if new is not None:
            fresh[new] = value
        elif not old:
            raise AttnscopeError(
                f"{name} = {value!r}: {_title(spec)} has no such setting any more. Expected some "
                f"of: {', '.join(settings(spec))}."
            )
    return fresh


def _title(spec: Any) -> str:
    name = getattr(type(spec), "name", None)
    return str(name()) if callable(name) else type(spec).__name__
