"""Studies of Snell et al., *Approximating How Single Head Attention Learns* (2021)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.snell2021.agreement import Agreement
    from attnscope.studies.snell2021.copying import CopyingStudy
    from attnscope.studies.snell2021.initial_derivative import (
        InitialDerivative as InitialDerivative,
    )
    from attnscope.studies.snell2021.keyword import KeywordStudy
    from attnscope.studies.snell2021.multihead import Multihead
    from attnscope.studies.snell2021.optimal_attention import OptimalAttentionStudy
    from attnscope.studies.snell2021.permutation import PermutationStudy
    from attnscope.studies.snell2021.words_first import WordsFirst

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "agreement": ("Agreement",),
        "copying": ("CopyingStudy",),
        "initial_derivative": ("InitialDerivative",),
        "keyword": ("KeywordStudy",),
        "multihead": ("Multihead",),
        "optimal_attention": ("OptimalAttentionStudy",),
        "permutation": ("PermutationStudy",),
        "words_first": ("WordsFirst",),
    },
)
