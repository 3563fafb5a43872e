"""Li, Li, Risteski, *How Do Transformers Learn Topic Structure* (ICML 2023).

Every function is a pure function of arrays and of six numbers: T, v, τ and the masks. A
:class:`TopicSetting` holds them, and so does any task with the same fields.
"""

from attnscope.theory.li2023.family import (
    gram_shift,
    measured_gap,
    prediction_residual,
    topic_gap,
)
from attnscope.theory.li2023.onset import (
    COARSE,
    Onset,
    growth_exponent,
    measured_onset,
    predicted_norms,
    predicted_onset,
    rotation,
    top_singular,
)
from attnscope.theory.li2023.propagator import LinearAttention, expected_norms, propagate
from attnscope.theory.li2023.score_gradient import score_gradient
from attnscope.theory.li2023.setting import Constants, Topics, TopicSetting, constants
from attnscope.theory.li2023.stage2 import attention_loss, best_attention, best_gamma, mean_ratio
from attnscope.theory.li2023.stage2_mask import best_gamma_at, best_ratios, masked_loss
from attnscope.theory.li2023.theorem1 import (
    corrected_example,
    embedding_bias,
    embedding_family_residual,
    embedding_member,
    embedding_residual,
    printed_example,
)
from attnscope.theory.li2023.theorem2 import (
    ValueBlocks,
    diagonal_value_blocks,
    ridge_value_blocks,
    value_blocks,
)
from attnscope.theory.li2023.theorem3 import (
    Bounds,
    Hypothesis,
    gamma_bounds,
    hypotheses,
    lambda_1,
    lambda_2,
)
from attnscope.theory.li2023.theorem4 import (
    value_family_residual,
    value_member,
    value_residual,
)
from attnscope.theory.li2023.theorem5 import DiagonalBounds, diagonal_bounds
from attnscope.theory.li2023.value_flow import ValueSolution, diagonal_excess, shortness

__all__ = [
    "COARSE",
    "Bounds",
    "Constants",
    "DiagonalBounds",
    "Hypothesis",
    "LinearAttention",
    "Onset",
    "TopicSetting",
    "Topics",
    "ValueBlocks",
    "ValueSolution",
    "attention_loss",
    "best_attention",
    "best_gamma",
    "best_gamma_at",
    "best_ratios",
    "constants",
    "corrected_example",
    "diagonal_bounds",
    "diagonal_excess",
    "diagonal_value_blocks",
    "embedding_bias",
    "embedding_family_residual",
    "embedding_member",
    "embedding_residual",
    "expected_norms",
    "gamma_bounds",
    "gram_shift",
    "growth_exponent",
    "hypotheses",
    "lambda_1",
    "lambda_2",
    "masked_loss",
    "mean_ratio",
    "measured_gap",
    "measured_onset",
    "predicted_norms",
    "predicted_onset",
    "prediction_residual",
    "printed_example",
    "propagate",
    "ridge_value_blocks",
    "rotation",
    "score_gradient",
    "shortness",
    "top_singular",
    "topic_gap",
    "value_blocks",
    "value_family_residual",
    "value_member",
    "value_residual",
]
