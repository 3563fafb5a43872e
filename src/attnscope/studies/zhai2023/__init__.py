"""Studies of Zhai et al., *Preventing Attention Entropy Collapse* (ICML 2023)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.zhai2023.collapse import Collapse
    from attnscope.studies.zhai2023.floor import Floor

__getattr__, __dir__, __all__ = attach(__name__, {"collapse": ("Collapse",), "floor": ("Floor",)})
