"""Several theories laid over one run."""

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.studies.crossing.one_run import OneRun

__getattr__, __dir__, __all__ = attach(__name__, {"one_run": ("OneRun",)})
