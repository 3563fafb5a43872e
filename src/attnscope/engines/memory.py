"""Memory that is freed at one step and asked for again at the next stays with the process.

The C library returns large blocks to the system as soon as they are freed. A step of training frees
and asks for megabytes a dozen times, and every page that comes back has to be made anew: a tenth of
the time of a step of a small transformer (``benchmarks/song2024_step.py``).
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")
"""Variables by which somebody has decided otherwise."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of the two settings in glibc's malloc.h."""
LARGEST = 2**25
"""Bytes of a block that are kept; glibc allows no more. Larger ones are returned as ever."""
KEPT = 2**29
"""Most bytes that are kept at once."""


@cache
def keep_freed_memory() -> bool:
    """Ask the C library to keep what is freed, up to :data:`KEPT`; return whether it does.

    It does where it is glibc and no variable of :data:`SETTINGS` is set. Numbers do not change.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in SETTINGS):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST)) and bool(mallopt(M_TRIM_THRESHOLD, KEPT))
