"""Where attention will look on labelled text, said from the data alone, against what it learns."""

from attnscope.studies.predict.labelled.study import Labelled

__all__ = ["Labelled"]
