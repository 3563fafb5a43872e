"""Studies of Edelman et al., *The Evolution of Statistical Induction Heads* (NeurIPS 2024)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.edelman2024.minimal import Minimal
    from attnscope.studies.edelman2024.phases import Phases
    from attnscope.studies.edelman2024.transition import TransitionTimes

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "minimal": ("Minimal",),
        "phases": ("Phases",),
        "transition": ("TransitionTimes",),
    },
)
