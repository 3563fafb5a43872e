"""Predictions from data alone, held against what attention then learns.

import attnscope
from attnscope.studies.predict import Labelled

run = attnscope.run(Labelled(sets=("sst2",)))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.predict.labelled import Labelled
    from attnscope.studies.predict.onset import Onset
    from attnscope.studies.predict.shortcut import Shortcut
    from attnscope.studies.predict.toys import Toys
    from attnscope.studies.predict.when import When

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "labelled": ("Labelled",),
        "onset": ("Onset",),
        "shortcut": ("Shortcut",),
        "toys": ("Toys",),
        "when": ("When",),
    },
)
