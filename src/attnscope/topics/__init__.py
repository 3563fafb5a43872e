"""From text to topics: streamed corpora, online LDA, and the words that stand for one topic.

    from attnscope.topics import fit_topics, topic_words

    model = fit_topics("wikitext-2-v1.zip", topics=100, passes=6)
    chosen = topic_words(model, threshold=0.001)
    chosen.topics["battleship"]              # frozenset({17})

Names are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnscope.topics.coherence import npmi
    from attnscope.topics.corpus import stream
    from attnscope.topics.filter import TopicWords, topic_words, usable_thresholds
    from attnscope.topics.lda import fit_topics
    from attnscope.topics.model import TopicModel, load_topics
    from attnscope.topics.words import content_words

__all__ = [
    "TopicModel",
    "TopicWords",
    "content_words",
    "fit_topics",
    "load_topics",
    "npmi",
    "stream",
    "topic_words",
    "usable_thresholds",
]

_HOMES = {
    "TopicModel": "model",
    "TopicWords": "filter",
    "content_words": "words",
    "fit_topics": "lda",
    "load_topics": "model",
    "npmi": "coherence",
    "stream": "corpus",
    "topic_words": "filter",
    "usable_thresholds": "filter",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
