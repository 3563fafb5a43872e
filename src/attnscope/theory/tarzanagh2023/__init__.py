r"""Attention as a max-margin token selector (Ataee Tarzanagh et al. 2023, two papers).

*Max-Margin Token Selection in Attention Mechanism* (NeurIPS 2023) and *Transformers as Support
Vector Machines* (2023). A head with a fixed value vector has logits :math:`k_{it} \cdot \theta`:
the features k are keys, θ = p, or :math:`x_{it} z_i^\top`, θ = W. Training drives θ to infinity, in
the direction of a support vector machine that keeps the chosen tokens apart from the others. Pure
functions of arrays.
"""

from attnscope.theory.tarzanagh2023.joint import JointSvm, joint_descent, joint_svm
from attnscope.theory.tarzanagh2023.nuclear import nuclear_svm
from attnscope.theory.tarzanagh2023.selection import (
    chosen_tokens,
    is_locally_optimal,
    optimal_tokens,
    swapped,
)
from attnscope.theory.tarzanagh2023.svm import AttentionSvm, attention_svm, least_distance
from attnscope.theory.tarzanagh2023.tail import SLOPES, Loss, slope_of, tail_constants

__all__ = [
    "SLOPES",
    "AttentionSvm",
    "JointSvm",
    "Loss",
    "attention_svm",
    "chosen_tokens",
    "is_locally_optimal",
    "joint_descent",
    "joint_svm",
    "least_distance",
    "nuclear_svm",
    "optimal_tokens",
    "slope_of",
    "swapped",
    "tail_constants",
]
