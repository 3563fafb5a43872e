"""A head learns one product at a time, at times a greedy algorithm knows (section 3, Fig 1)."""

from attnscope.studies.boix2023.stages.study import StagesStudy

__all__ = ["StagesStudy"]
