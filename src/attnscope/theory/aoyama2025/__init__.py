"""Aoyama et al., *Predicting the Formation of Induction Heads* (2025; refitted 2026).

How many tokens are read until an induction head appears, from batch size and context length alone.
"""

from attnscope.theory.aoyama2025.critical_batch import CriticalBatch, critical_batch
from attnscope.theory.aoyama2025.law import FITS, SCATTER, Emergence, Fit, emergence_tokens

__all__ = [
    "FITS",
    "SCATTER",
    "CriticalBatch",
    "Emergence",
    "Fit",
    "critical_batch",
    "emergence_tokens",
]
