"""Studies of Ataee Tarzanagh et al. 2023: attention as a max-margin token selector."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.tarzanagh2023.joint import JointStudy
    from attnscope.studies.tarzanagh2023.selection import SelectionStudy
    from attnscope.studies.tarzanagh2023.tail import TailStudy

__getattr__, __dir__, __all__ = attach(
    __name__,
    {"joint": ("JointStudy",), "selection": ("SelectionStudy",), "tail": ("TailStudy",)},
)
