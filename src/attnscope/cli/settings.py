"""The settings of a study as flags: ``m: Count = 20`` is ``--m 20``."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.cli.arguments import Parser, one_of, real, whole
from attnscope.errors import AttnscopeError

if TYPE_CHECKING:
    from attnscope.experiment import Experiment
    from attnscope.experiment.spec import Setting

METAVARS = {int: "N", float: "X", str: "TEXT", Path: "PATH"}
READERS: dict[Any, Callable[[str], Any]] = {int: whole, float: real, str: str, Path: Path}


def add_settings(parser: Parser, spec: Experiment) -> None:
    """Add a flag for every setting of a spec, its value as the default.

    Raises:
        AttnscopeError: a setting has the name of a flag that is there, or a kind that no word of a
            command line says.
    """
    from attnscope.experiment.spec import renamings, settings

    group = parser.add_argument_group(f"settings of {spec.name()}")
    for setting in settings(spec).values():
        try:
            group.add_argument(flag_of(setting.name), **_described(setting))
        except argparse.ArgumentError:
            raise AttnscopeError(
                f"{spec.name()} has a setting called '{setting.name}', and "
                f"{flag_of(setting.name)} is a flag of `attnscope run`: expected another name."
            ) from None
    for old, new in renamings(spec).items():
        parser.spellings[flag_of(old)] = None if new is None else flag_of(new)


def with_settings(spec: Experiment, options: argparse.Namespace) -> Experiment:
    """Return the spec with the settings that flags changed.

    Raises:
        AttnscopeError: a value is out of its bounds.
    """
    from attnscope.experiment.spec import settings

    wanted = {}
    for name, setting in settings(spec).items():
        value = getattr(options, name)
        value = tuple(value) if isinstance(value, list) else value
        if value != setting.value:
            wanted[name] = value
    return spec.but(**wanted)


def flag_of(name: str) -> str:
    """Return the flag of a setting.

    >>> flag_of("words_per_topic")
    '--words-per-topic'
    """
    return f"--{name.replace('_', '-')}"


def _described(setting: Setting) -> dict[str, Any]:
    """Return what argparse has to know of a setting."""
    meaning = setting.meaning.replace("%", "%%").replace("``", "")
    shown = f"{meaning} " if meaning else ""
    shown += f"(default: {_said(setting.value)})".replace("%", "%%")
    given: dict[str, Any] = {"dest": setting.name, "default": setting.value, "help": shown}
    kind, none = _plain(setting.kind)
    if kind is bool:
        return {**given, "action": argparse.BooleanOptionalAction}
    if typing.get_origin(kind) is tuple:
        parts = typing.get_args(kind)
        several = len(parts) == 2 and parts[1] is Ellipsis
        first, _ = _plain(parts[0])
        reader, metavar = _reader(first, setting)
        count: Any = "*" if several else len(parts)
        return {**given, "nargs": count, "type": reader, "metavar": metavar}
    reader, metavar = _reader(kind, setting)
    return {**given, "type": _or_none(reader) if none else reader, "metavar": metavar}


def _plain(kind: Any) -> tuple[Any, bool]:
    """Return a kind without its bounds, and whether None is one of its values."""
    if typing.get_origin(kind) is typing.Annotated:
        return _plain(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = [each for each in typing.get_args(kind) if each is not type(None)]
        none = len(parts) < len(typing.get_args(kind))
        # Of several kinds the first that takes a number is what a word is read as.
        plain = [_plain(each)[0] for each in parts]
        return (float if {int, float} <= set(plain) else plain[0]), none
    return kind, False


def _reader(kind: Any, setting: Setting) -> tuple[Callable[[str], Any], str]:
    if typing.get_origin(kind) is typing.Literal:
        words = [str(each) for each in typing.get_args(kind)]
        return one_of(words), "{" + ",".join(words) + "}"
    if kind not in READERS:
        raise AttnscopeError(
            f"the setting '{setting.name}' is of kind {setting.kind}, which no word of a command "
            "line says: expected a number, a text, True or False, a Literal, or a tuple of these. "
            "From Python it can be anything: attnscope.run(Study(...))."
        )
    return READERS[kind], METAVARS[kind]


def _or_none(reader: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        return None if text == "None" else reader(text)

    return read


def _said(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return str(value)
