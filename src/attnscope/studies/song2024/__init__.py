"""Studies of Song et al., *Unraveling the Gradient Descent Dynamics of Transformers* (2024)."""

from attnscope.studies.song2024.convergence import Convergence
from attnscope.studies.song2024.landscape import Landscape
from attnscope.studies.song2024.pathfinder import Pathfinder
from attnscope.studies.song2024.query_only import QueryOnly
from attnscope.studies.song2024.text import Text

__all__ = ["Convergence", "Landscape", "Pathfinder", "QueryOnly", "Text"]
