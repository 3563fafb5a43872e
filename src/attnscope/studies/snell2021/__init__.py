"""Studies of Snell et al., *Approximating How Single Head Attention Learns* (2021)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement as Agreement
    from attnscope.studies.snell2021.copying import CopyPermutations as CopyPermutations
    from attnscope.studies.snell2021.initial_derivative import InitialDerivative as InitialDerivative
    from attnscope.studies.snell2021.keyword import KeywordDrift as KeywordDrift
    from attnscope.studies.snell2021.multihead import Multihead as Multihead
    from attnscope.studies.snell2021.optimal_attention import BestAttention as BestAttention
    from attnscope.studies.snell2021.permutation import FixedPermutation as FixedPermutation

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "agreement": ("Agreement",),
        "copying": ("CopyPermutations",),
        "initial_derivative": ("InitialDerivative",),
        "keyword": ("KeywordDrift",),
        "multihead": ("Multihead",),
        "optimal_attention": ("BestAttention",),
        "permutation": ("FixedPermutation",),
    },
)
