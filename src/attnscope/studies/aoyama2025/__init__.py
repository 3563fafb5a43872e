"""Studies of Aoyama et al., *Predicting the Formation of Induction Heads* (2025)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.aoyama2025.emergence import Emergence
    from attnscope.studies.aoyama2025.surrogate import Surrogate

__getattr__, __dir__, __all__ = attach(
    __name__, {"emergence": ("Emergence",), "surrogate": ("Surrogate",)}
)
