"""Data generators and loaders with their ground truth, one file a task."""

from attnscope.tasks.bags import Bags
from attnscope.tasks.topic_documents import Documents, TopicDocuments, TopicStream
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.tasks.topic_words import TopicWords, TopicWordsData
from attnscope.tasks.word_pairs import Sentences, WordPairs, WordPairsData

__all__ = [
    "Bags",
    "Documents",
    "Sentences",
    "TopicDocuments",
    "TopicPopulation",
    "TopicStream",
    "TopicWords",
    "TopicWordsData",
    "WordPairs",
    "WordPairsData",
]
