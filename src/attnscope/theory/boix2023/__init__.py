"""Boix-Adsera, Littwin, Abbe, Bengio, Susskind, *Transformers learn through gradual rank increase*.

NeurIPS 2023. With weights that are products of small numbers, w = u v, training from a start of
size α goes from plateau to plateau, and each adds one product at most. Pure functions of arrays.
"""

from attnscope.theory.boix2023.limit import RestLimit, restricted_limit
from attnscope.theory.boix2023.small_start import (
    SMALLEST,
    check_size,
    extrapolate,
    first_time,
    rescaled,
)
from attnscope.theory.boix2023.stages import Stage, Stages, greedy_stages

__all__ = [
    "SMALLEST",
    "RestLimit",
    "Stage",
    "Stages",
    "check_size",
    "extrapolate",
    "first_time",
    "greedy_stages",
    "rescaled",
    "restricted_limit",
]
