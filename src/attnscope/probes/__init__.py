"""Pure functions of arrays; they serve laboratory runs and watched models alike."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.probes.intervals import histogram_interval, mean_interval
    from attnscope.probes.lexicon.agreement import contextual, mean_agreement, random_baseline
    from attnscope.probes.lexicon.alignment import alignment_error_rate
    from attnscope.probes.lexicon.counts import count_table, translation_table
    from attnscope.probes.lexicon.kendall import kendall_tau
    from attnscope.probes.sen import average, largest, rank_correlation, relative_deviation
    from attnscope.probes.shares import share_interval

_HOMES: dict[str, tuple[str, ...]] = {
    "intervals": (
        "histogram_interval",
        "mean_interval",
    ),
    "lexicon.agreement": (
        "contextual",
        "mean_agreement",
        "random_baseline",
    ),
    "lexicon.alignment": ("alignment_error_rate",),
    "lexicon.counts": (
        "count_table",
        "translation_table",
    ),
    "lexicon.kendall": ("kendall_tau",),
    "sen": (
        "average",
        "largest",
        "rank_correlation",
        "relative_deviation",
    ),
    "shares": ("share_interval",),
}
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)
