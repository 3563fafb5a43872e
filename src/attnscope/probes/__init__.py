"""Pure functions of arrays; they serve laboratory runs and watched models alike."""

from attnscope.probes.intervals import histogram_interval, mean_interval
from attnscope.probes.sen import average, largest, rank_correlation, relative_deviation

__all__ = [
    "average",
    "histogram_interval",
    "largest",
    "mean_interval",
    "rank_correlation",
    "relative_deviation",
]
