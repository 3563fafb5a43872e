"""Reading what was recorded while somebody's own model was trained.

The recorder is :mod:`attnscope.watching`; here its runs become figures, tables, attention maps, and
words about what is the matter with the model.
"""

from attnscope.claims.diagnosis import Diagnosis
from attnscope.watched.diagnosis import diagnose, undecided
from attnscope.watched.experiment import Watched

__all__ = ["Diagnosis", "Watched", "diagnose", "undecided"]
