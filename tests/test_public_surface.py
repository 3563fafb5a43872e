"""What ``import attnscope`` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import attnscope

HEAVY = ("torch", "numpy", "xarray", "scipy", "zarr", "matplotlib", "bokeh")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", attnscope.__all__)
def test_every_name_resolves_and_is_documented(name: str) -> None:
    value = getattr(attnscope, name)
    assert callable(value)
    assert value.__doc__


def test_names_stay_what_they_are_once_their_modules_are_imported() -> None:
    """A function must not be shadowed by a module of the same name."""
    code = (
        "import attnscope\n"
        "import attnscope.cli, attnscope.report, attnscope.results, attnscope.training\n"
        "names = attnscope.__all__\n"
        "print([n for n in names for _ in range(2) if not callable(getattr(attnscope, n))])\n"
    )
    assert python(code) == "[]"


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, attnscope; print([m for m in {HEAVY} if m in sys.modules])"
    assert python(code) == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        attnscope.trian  # noqa: B018
