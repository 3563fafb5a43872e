"""Studies of Snell et al., *Approximating How Single Head Attention Learns* (2021)."""

from attnscope.studies.snell2021.agreement import Agreement
from attnscope.studies.snell2021.copying import CopyPermutations
from attnscope.studies.snell2021.initial_derivative import InitialDerivative
from attnscope.studies.snell2021.keyword import KeywordDrift
from attnscope.studies.snell2021.multihead import Multihead
from attnscope.studies.snell2021.optimal_attention import BestAttention
from attnscope.studies.snell2021.permutation import FixedPermutation

__all__ = [
    "Agreement",
    "BestAttention",
    "CopyPermutations",
    "FixedPermutation",
    "InitialDerivative",
    "KeywordDrift",
    "Multihead",
]
