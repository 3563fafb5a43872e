"""The best attention to the own topic: its landscape, its growth, and training (Theorems 3, 5)."""

from attnscope.studies.li2023.optimum.study import Optimum

__all__ = ["Optimum"]
