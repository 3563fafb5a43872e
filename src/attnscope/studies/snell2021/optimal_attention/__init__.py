"""The best attention looks at the largest β, though it need not for three words or more (A.1)."""

from attnscope.studies.snell2021.optimal_attention.study import OptimalAttentionStudy

__all__ = ["OptimalAttentionStudy"]
