"""The same theory on real sentences: film reviews, or a table of your own (Figs 4 to 7)."""

from attnscope.studies.lu2021.sst.study import Sst

__all__ = ["Sst"]
