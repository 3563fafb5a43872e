"""Data generators and loaders with their ground truth, one file a task."""

from attnscope.tasks.bags import Bags
from attnscope.tasks.byte_text import ByteText
from attnscope.tasks.copying import Copying
from attnscope.tasks.keyword import Keyword
from attnscope.tasks.marked_letters import MarkedLetters
from attnscope.tasks.pathfinder import Pathfinder
from attnscope.tasks.random_regression import RandomRegression
from attnscope.tasks.sequence_pairs import SequencePairs
from attnscope.tasks.topic_documents import Documents, TopicDocuments, TopicStream
from attnscope.tasks.topic_population import TopicPopulation
from attnscope.tasks.topic_words import TopicWords, TopicWordsData
from attnscope.tasks.word_pairs import Sentences, WordPairs, WordPairsData

__all__ = [
    "Bags",
    "ByteText",
    "Copying",
    "Documents",
    "Keyword",
    "MarkedLetters",
    "Pathfinder",
    "RandomRegression",
    "Sentences",
    "SequencePairs",
    "TopicDocuments",
    "TopicPopulation",
    "TopicStream",
    "TopicWords",
    "TopicWordsData",
    "WordPairs",
    "WordPairsData",
]
