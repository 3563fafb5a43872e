"""One good head among eight is enough to learn what a single bad head does not (Fig 6)."""

from attnscope.studies.snell2021.multihead.study import Multihead

__all__ = ["Multihead"]
