"""Attention starts when a run without any attention says it will (beyond the paper, Fig 4)."""

from attnscope.studies.li2023.onset.study import OnsetStudy

__all__ = ["OnsetStudy"]
