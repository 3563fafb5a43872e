"""Edelman et al., *The Evolution of Statistical Induction Heads* (NeurIPS 2024).

What a predictor of Markov chains can answer, what each answer costs, and when the minimal model
goes from one to the next.
"""

from attnscope.theory.edelman2024.losses import (
    Costs,
    infinite_context,
    laplace_regret,
    one_look,
    row_entropy,
)
from attnscope.theory.edelman2024.minimal import (
    LOOKS_BACK,
    Transition,
    UnigramExpansion,
    lag_push,
    linear_course,
    looks_back,
    predict_transition,
    unigram_point,
)
from attnscope.theory.edelman2024.strategies import STRATEGIES, divergence, strategies

__all__ = [
    "LOOKS_BACK",
    "STRATEGIES",
    "Costs",
    "Transition",
    "UnigramExpansion",
    "divergence",
    "infinite_context",
    "lag_push",
    "laplace_regret",
    "linear_course",
    "looks_back",
    "one_look",
    "predict_transition",
    "row_entropy",
    "strategies",
    "unigram_point",
]
