"""The data sets that the studies know."""

from __future__ import annotations

from attnscope.datasets.labelled_sets import LABELLED
from attnscope.datasets.record import DataFile, DataSet
from attnscope.datasets.text_sets import OTHERS
from attnscope.errors import AttnscopeError, nearest

__all__ = ["CATALOGUE", "DataFile", "DataSet", "entry"]

CATALOGUE: dict[str, DataSet] = {dataset.key: dataset for dataset in (*LABELLED, *OTHERS)}


def entry(key: str) -> DataSet:
    """Return a data set by its key.

    Raises:
        AttnscopeError: there is none of that name.
    """
    if key not in CATALOGUE:
        raise AttnscopeError(
            f"there is no data set '{key}'.{nearest(key, CATALOGUE)} "
            f"Expected one of: {', '.join(CATALOGUE)}."
        )
    return CATALOGUE[key]
