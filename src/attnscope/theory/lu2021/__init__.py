"""Lu, Mao, Nayak, *On the Dynamics of Training Attention Models* (ICLR 2021).

Every function is a pure function of arrays and of the task's sentences.
"""

from attnscope.theory.lu2021.assumption1 import Movement, movement
from attnscope.theory.lu2021.corollary1 import norm_from_score, score_from_norm
from attnscope.theory.lu2021.fixed_linear import fixed_linear_loss, fixed_linear_norm, late_loss
from attnscope.theory.lu2021.lemma2 import TopicWordFlow, lemma2_flow, reduced_flow
from attnscope.theory.lu2021.psi import (
    PsiAverages,
    PsiSets,
    effective_m,
    neighbours,
    psi_averages,
    words_in_company,
)
from attnscope.theory.lu2021.theorem1 import identity_residual, predicted_norm
from attnscope.theory.lu2021.theorem2 import topic_attention, weight_from_norm, weight_from_score
from attnscope.theory.lu2021.two_variables import (
    WordsOverTime,
    mean_concentration,
    two_variable_adam,
    two_variable_descent,
    two_variable_flow,
)

__all__ = [
    "Movement",
    "PsiAverages",
    "PsiSets",
    "TopicWordFlow",
    "WordsOverTime",
    "effective_m",
    "fixed_linear_loss",
    "fixed_linear_norm",
    "identity_residual",
    "late_loss",
    "lemma2_flow",
    "mean_concentration",
    "movement",
    "neighbours",
    "norm_from_score",
    "predicted_norm",
    "psi_averages",
    "reduced_flow",
    "score_from_norm",
    "topic_attention",
    "two_variable_adam",
    "two_variable_descent",
    "two_variable_flow",
    "weight_from_norm",
    "weight_from_score",
    "words_in_company",
]
