"""Pure functions of arrays; they serve laboratory runs and watched models alike."""

from attnscope.probes.intervals import histogram_interval, mean_interval
from attnscope.probes.lexicon.agreement import contextual, mean_agreement, random_baseline
from attnscope.probes.lexicon.alignment import alignment_error_rate
from attnscope.probes.lexicon.counts import count_table, translation_table
from attnscope.probes.lexicon.kendall import kendall_tau
from attnscope.probes.sen import average, largest, rank_correlation, relative_deviation
from attnscope.probes.shares import share_interval

__all__ = [
    "alignment_error_rate",
    "average",
    "contextual",
    "count_table",
    "histogram_interval",
    "kendall_tau",
    "largest",
    "mean_agreement",
    "mean_interval",
    "random_baseline",
    "rank_correlation",
    "relative_deviation",
    "share_interval",
    "translation_table",
]
