"""From text to topics: streamed corpora, online LDA, and the words that stand for one topic.

    from attnscope.topics import fit_topics, topic_words

    model = fit_topics("wikitext-2-v1.zip", topics=100, passes=6)
    chosen = topic_words(model, threshold=0.001)
    chosen.topics["battleship"]              # frozenset({17})

Names are imported when they are first used, so that the command line answers at once.
"""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.topics.coherence import npmi
    from attnscope.topics.corpus import stream
    from attnscope.topics.filter import TopicVocabulary, topic_words, usable_thresholds
    from attnscope.topics.kept import TopicFit
    from attnscope.topics.lda import fit_topics
    from attnscope.topics.model import TopicModel, load_topics
    from attnscope.topics.words import content_words

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "coherence": ("npmi",),
        "corpus": ("stream",),
        "filter": ("TopicWords", "topic_words", "usable_thresholds"),
        "kept": ("TopicFit",),
        "lda": ("fit_topics",),
        "model": ("TopicModel", "load_topics"),
        "words": ("content_words",),
    },
)
