"""Ordinary ``nn.Module``s that expose by name what the theory speaks of."""

from attnscope.models.bag_attention import BagAttention, KeyQuery, ScoreTable
from attnscope.models.classifiers import FixedLinear, TrainableLinear, TwoLayer, classifier
from attnscope.models.kernel_attention import KernelAttention
from attnscope.models.kernel_classifier import KernelClassifier
from attnscope.models.kernels.switch import switch_bound, switch_to_gaussian
from attnscope.models.seq2seq import Seq2Seq, Seq2SeqObjective
from attnscope.models.sequence_classifier import ClassifierObjective, SequenceClassifier
from attnscope.models.sigma_reparam import SigmaReparam, fold_sigma_reparam, sigma_reparam
from attnscope.models.topic_objective import PopulationObjective, TopicObjective
from attnscope.models.topic_transformer import TopicTransformer
from attnscope.models.word_pair_cnn import WordPairAttention
from attnscope.models.word_proxy import ProxyObjective, WordProxy

__all__ = [
    "BagAttention",
    "ClassifierObjective",
    "FixedLinear",
    "KernelAttention",
    "KernelClassifier",
    "KeyQuery",
    "PopulationObjective",
    "ProxyObjective",
    "ScoreTable",
    "Seq2Seq",
    "Seq2SeqObjective",
    "SequenceClassifier",
    "SigmaReparam",
    "TopicObjective",
    "TopicTransformer",
    "TrainableLinear",
    "TwoLayer",
    "WordPairAttention",
    "WordProxy",
    "classifier",
    "fold_sigma_reparam",
    "sigma_reparam",
    "switch_bound",
    "switch_to_gaussian",
]
