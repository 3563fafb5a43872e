"""Studies of Snell et al., *Approximating How Single Head Attention Learns* (2021)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement as Agreement
    from attnscope.studies.snell2021.copying import CopyingStudy as CopyingStudy
    from attnscope.studies.snell2021.initial_derivative import (
        InitialDerivative as InitialDerivative,
    )
    from attnscope.studies.snell2021.keyword import KeywordStudy as KeywordStudy
    from attnscope.studies.snell2021.multihead import Multihead as Multihead
    from attnscope.studies.snell2021.optimal_attention import OptimalAttention as OptimalAttention
    from attnscope.studies.snell2021.permutation import PermutationStudy as PermutationStudy
    from attnscope.studies.snell2021.words_first import WordsFirst as WordsFirst

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "agreement": ("Agreement",),
        "copying": ("CopyingStudy",),
        "initial_derivative": ("InitialDerivative",),
        "keyword": ("KeywordStudy",),
        "multihead": ("Multihead",),
        "optimal_attention": ("OptimalAttention",),
        "permutation": ("PermutationStudy",),
        "words_first": ("WordsFirst",),
    },
)
