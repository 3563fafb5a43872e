"""What is missing or too old: a sentence instead of the first thing that breaks.

Recording a model, its report and the command line need nothing but the core. What studies, images
and the lab need beyond it are extras of the package, imported when they are first needed.
"""

from __future__ import annotations

import importlib.util
import re

from attnscope.errors import AttnscopeError

OLDEST_TORCH = (2, 9)
"""The oldest PyTorch that the tests were run with."""
EXTRAS = {
    "scipy": ("SciPy", "studies"),
    "bokeh": ("Bokeh", "studies"),
    "matplotlib": ("Matplotlib", "studies"),
    "contourpy": ("contourpy", "studies"),
    "tornado": ("Tornado", "lab"),
    "IPython": ("IPython", "notebook"),
    "sklearn": ("scikit-learn", "topics"),
    "transformers": ("transformers", "hf"),
}
"""Which extra brings a package, and how the package calls itself."""


def there(package: str) -> bool:
    """Return whether a package is installed, without importing it.

    >>> there("json"), there("no_such_package")
    (True, False)
    """
    return importlib.util.find_spec(package) is not None


def sentence(package: str) -> str:
    """Say how a package that is missing is brought.

    >>> sentence("bokeh")
    "Bokeh is not installed, and this needs it: `pip install 'attnscope[studies]'` brings it."
    """
    name, extra = EXTRAS[package]
    return (
        f"{name} is not installed, and this needs it: `pip install 'attnscope[{extra}]'` brings it."
    )


def missing(error: ModuleNotFoundError) -> AttnscopeError | None:
    """Return the sentence for a failed import; none if it is not of a package of an extra."""
    package = (error.name or "").partition(".")[0]
    return AttnscopeError(sentence(package)) if package in EXTRAS else None


def need(*packages: str) -> None:
    """Refuse to begin what needs packages that are not installed.

    Raises:
        AttnscopeError: one is not.
    """
    for package in packages:
        if not there(package):
            raise AttnscopeError(sentence(package))


def check_torch(version: str) -> None:
    """Refuse a PyTorch that is too old.

    Raises:
        AttnscopeError: it is.

    >>> check_torch("2.13.0+cpu")
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < OLDEST_TORCH:
        oldest = ".".join(map(str, OLDEST_TORCH))
        raise AttnscopeError(
            f"PyTorch {version} is installed: expected {oldest} or later, the oldest that "
            f"attnscope is tested with. `pip install 'torch>={oldest}'` brings it."
        )
