"""How tokens become vectors before the first layer: patches of an image, bytes with neighbours.

A stem maps ids ``(batch, n)`` to vectors ``(batch, tokens, width)`` and says how many tokens it
makes of them. One small file a stem.
"""

from attnscope.models.stems.neighbours import Neighbours
from attnscope.models.stems.patches import Patches, check_patch

__all__ = ["Neighbours", "Patches", "check_patch"]
