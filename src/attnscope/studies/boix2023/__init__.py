"""Studies of Boix-Adsera et al., *Transformers learn through gradual rank increase*, 2023."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.boix2023.head import HeadRun
    from attnscope.studies.boix2023.rank import RankStudy
    from attnscope.studies.boix2023.stages import StagesStudy

__getattr__, __dir__, __all__ = attach(
    __name__, {"head": ("HeadRun",), "rank": ("RankStudy",), "stages": ("StagesStudy",)}
)
