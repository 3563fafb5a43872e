"""With all weights trained both kernels fit every label, at the certified rate (Theorem 1)."""

from attnscope.studies.song2024.convergence.study import Convergence

__all__ = ["Convergence"]
