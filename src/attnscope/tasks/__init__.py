"""Data generators and loaders with their ground truth, one file a task."""

from attnscope.tasks.bags import Bags
from attnscope.tasks.topic_words import TopicWords, TopicWordsData
from attnscope.tasks.word_pairs import Sentences, WordPairs, WordPairsData

__all__ = ["Bags", "Sentences", "TopicWords", "TopicWordsData", "WordPairs", "WordPairsData"]
