"""Studies of Song et al., *Unraveling the Gradient Descent Dynamics of Transformers* (2024)."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.song2024.convergence import Convergence
    from attnscope.studies.song2024.landscape import Landscape
    from attnscope.studies.song2024.pathfinder import PathfinderStudy
    from attnscope.studies.song2024.query_only import QueryOnly
    from attnscope.studies.song2024.regression import RegressionRun
    from attnscope.studies.song2024.text import Text

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "convergence": ("Convergence",),
        "landscape": ("Landscape",),
        "pathfinder": ("PathfinderStudy",),
        "query_only": ("QueryOnly",),
        "text": ("Text",),
        "regression": ("RegressionRun",),
    },
)
