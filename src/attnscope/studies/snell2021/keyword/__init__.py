"""Under uniform attention the keyword's log odds wander off to the last position (Fig 7)."""

from attnscope.studies.snell2021.keyword.study import KeywordStudy

__all__ = ["KeywordStudy"]
