"""Ordinary ``nn.Module``s that expose by name what the theory speaks of."""

from attnscope.models.bag_attention import BagAttention, KeyQuery, ScoreTable
from attnscope.models.classifiers import (
    FixedLinear,
    TrainableLinear,
    TwoLayer,
    classifier,
)
from attnscope.models.topic_objective import PopulationObjective, TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.models.word_pair_cnn import WordPairAttention

__all__ = [
    "BagAttention",
    "FixedLinear",
    "KeyQuery",
    "PopulationObjective",
    "ScoreTable",
    "TopicObjective",
    "TopicTransformer",
    "TrainableLinear",
    "TwoLayer",
    "WordPairAttention",
    "classifier",
]
