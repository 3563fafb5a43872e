"""Published data sets: what is known of them, where they lie, how they are fetched and read.

    from attnscope.datasets import labelled

    text = labelled("sst2")                  # or a table of your own: labelled("mine.csv")
    text.splits["train"].texts, text.splits["train"].labels, text.classes

Names are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnscope.datasets.catalogue import CATALOGUE, entry
    from attnscope.datasets.load import documents, labelled, parallel
    from attnscope.datasets.place import data_dir

__all__ = ["CATALOGUE", "data_dir", "documents", "entry", "labelled", "parallel"]

_HOMES = {"CATALOGUE": "catalogue", "entry": "catalogue", "data_dir": "place"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'load')}"), name)
