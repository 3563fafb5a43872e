"""W^V learns first and attention later, with SGD and a small start but not with Adam (Fig 4)."""

from attnscope.studies.li2023.two_stage.study import TwoStage

__all__ = ["TwoStage"]
