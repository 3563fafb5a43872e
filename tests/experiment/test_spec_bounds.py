"""Every numeric setting of every study: what no computation could use is refused, and nothing runs.

Bounds are declared, so that what is refused is known beforehand, in the lab and in sweeps too.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Union

import pytest

from attnscope.bounds import LARGEST_COUNT, Bounds
from attnscope.catalogue import load, names
from attnscope.cli.verbs.run import parse
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment
from attnscope.experiment.spec import Setting, settings

STUDIES = names()
NEVER = (math.nan, math.inf, -math.inf, 1e308, -1e308, 1e-320, 10**400, 10**5000)
"""Numbers that no setting takes."""
SOMETIMES = (0, -1, 0.0, -1.0, LARGEST_COUNT)
"""Numbers that a setting takes if it says so, and if it fits the others."""


def variants(study: type[Experiment]) -> Iterator[Experiment]:
    """Yield the study with each kind of training that it offers."""
    spec = study()
    engine = settings(spec).get("engine")
    for kind in typing.get_args(engine.kind) if engine else (None,):
        yield spec if kind is None else spec.but(engine=kind)


def numeric(hint: Any) -> list[Any]:
    """Return the annotations of numbers that stand in an annotation."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return [hint] if parts[0] in (int, float) else numeric(parts[0])
    if origin in (Union, types.UnionType, tuple):
        return [found for part in parts for found in numeric(part)]
    return [hint] if hint in (int, float) else []


def numbers(spec: Experiment) -> list[Setting]:
    return [setting for setting in settings(spec).values() if numeric(setting.kind)]


def accepted(spec: Experiment, setting: Setting, value: Any) -> Experiment | None:
    """Return the spec with a value, or None if it is refused with a sentence."""
    try:
        return spec.but(**{setting.name: (value,) if isinstance(setting.value, tuple) else value})
    except AttnscopeError:
        return None


@pytest.mark.parametrize("name", STUDIES)
def test_numbers_that_no_setting_takes(name: str) -> None:
    for spec in variants(load(name)):
        assert numbers(spec)
        for setting in numbers(spec):
            for value in NEVER:
                assert accepted(spec, setting, value) is None, (setting.name, value)


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_taken_lies_within_what_is_declared(name: str) -> None:
    for spec in variants(load(name)):
        for setting in numbers(spec):
            declared = [b for h in numeric(setting.kind) for b in typing.get_args(h)[1:]]
            for value in SOMETIMES:
                made = accepted(spec, setting, value)
                if made is None or not all(isinstance(each, Bounds) for each in declared):
                    continue
                assert all(each.admits(value) for each in declared), (setting.name, value)
                if value < 0:
                    assert declared, (setting.name, value)  # A negative number is taken on purpose.


WRITTEN = ("nan", "1e400", "9" * 120, "9" * 5000, "x")


def refused(study: type[Experiment], words: list[str]) -> str:
    """Return the sentence, or that of tyro, which leaves with code 2."""
    try:
        parse(study, words)
    except AttnscopeError as error:
        return str(error)
    except SystemExit as left:
        return f"exit code {left.code}"
    return ""


@pytest.mark.parametrize("name", STUDIES)
def test_numbers_on_the_command_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    study = load(name)
    fields = numbers(study())
    for place, text in enumerate(WRITTEN):
        setting = fields[(place + len(name)) % len(fields)]
        said = refused(study, [f"--{setting.name.replace('_', '-')}", text])
        assert "expected" in said or said == "exit code 2"
    assert "Traceback" not in capsys.readouterr().err
