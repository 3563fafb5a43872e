"""Snell, Zhong, Klein, Steinhardt, *Approximating How Single Head Attention Learns* (2021).

Every function is a pure function of arrays. ``predict_knowledge`` says before any training whether
a task's words can be learned from a count table; ``limit_derivative`` and ``proxy_flow`` say how
fast; ``optimal_attention`` says where attention should go once they are. ``AskedCells`` says from
counts of words alone where attention will go.
"""

from attnscope.theory.snell2021.before_training import AskedCells
from attnscope.theory.snell2021.binary import attention_pull, correct_probability
from attnscope.theory.snell2021.derivative import (
    Derivative,
    early_probabilities,
    exact_derivative,
    expected_error,
    limit_derivative,
    printed_derivative,
    slope,
)
from attnscope.theory.snell2021.grams import Grams
from attnscope.theory.snell2021.knowledge import Knowledge, predict_knowledge
from attnscope.theory.snell2021.optimal_attention import (
    EQUATION_30,
    OptimalAttention,
    frank_wolfe_gap,
    near_equation_30,
    optimal_attention,
    random_optimum,
)
from attnscope.theory.snell2021.pair_bags import PairBags, pair_bags
from attnscope.theory.snell2021.proxy_flow import ProxyFlow, proxy_flow
from attnscope.theory.snell2021.toy_system import ToySolution, toy_solution

__all__ = [
    "EQUATION_30",
    "AskedCells",
    "Derivative",
    "Grams",
    "Knowledge",
    "OptimalAttention",
    "PairBags",
    "ProxyFlow",
    "ToySolution",
    "attention_pull",
    "correct_probability",
    "early_probabilities",
    "exact_derivative",
    "expected_error",
    "frank_wolfe_gap",
    "limit_derivative",
    "near_equation_30",
    "optimal_attention",
    "pair_bags",
    "predict_knowledge",
    "printed_derivative",
    "proxy_flow",
    "random_optimum",
    "slope",
    "toy_solution",
]
