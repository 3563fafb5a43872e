"""The loss around the end of training, softmax first and then either kernel (Fig 3)."""

from attnscope.studies.song2024.landscape.study import Landscape

__all__ = ["Landscape"]
