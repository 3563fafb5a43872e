"""W^V of Stage 1 goes to Theorem 2 by flow and by SGD, and where it goes elsewhere (Theorem 2)."""

from attnscope.studies.li2023.value.study import Value

__all__ = ["Value"]
