"""What a study is, and how it is run: a spec, its runs, and what is made of them.

The smallest study is a dataclass with one method, :meth:`Study.build`. See ``attnscope new``.
"""

from attnscope.experiment.base import KNOWN, Experiment
from attnscope.experiment.crew import Listener
from attnscope.experiment.estimate import CaseCost, Estimate, estimate
from attnscope.experiment.executor import Solved, Stopped, execute, solve
from attnscope.experiment.job import Job
from attnscope.experiment.measurement import Measurement, Pass, Quantity
from attnscope.experiment.playable import NOW, AttentionOverTime, Playable
from attnscope.experiment.runner import RUNS, Broken, Interrupted, is_complete, run
from attnscope.experiment.study import Problem, Study
from attnscope.scales import Scale

__all__ = [
    "KNOWN",
    "NOW",
    "RUNS",
    "AttentionOverTime",
    "Broken",
    "CaseCost",
    "Estimate",
    "Experiment",
    "Interrupted",
    "Job",
    "Listener",
    "Measurement",
    "Pass",
    "Playable",
    "Problem",
    "Quantity",
    "Scale",
    "Solved",
    "Stopped",
    "Study",
    "estimate",
    "execute",
    "is_complete",
    "run",
    "solve",
]
