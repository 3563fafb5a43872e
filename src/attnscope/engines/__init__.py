"""Two ways through training with one signature: step by step, and as a flow."""

import torch

from attnscope.engines.chunks import Chunked
from attnscope.engines.descent import Descent
from attnscope.engines.flow import Flow
from attnscope.engines.observe import (
    Final,
    Given,
    Linear,
    Logarithmic,
    Observable,
    Record,
    snapshots,
)
from attnscope.engines.schedule import OneCycle, Switch
from attnscope.engines.sink import Checkpoint, Memory, Sink
from attnscope.engines.solution import Outcome, Solution
from attnscope.engines.steps import Adam, Sgd, Steps
from attnscope.engines.stopping import Attempts, LossBelow, Patience, Reached
from attnscope.needs import check_torch

__all__ = [
    "Adam",
    "Attempts",
    "Checkpoint",
    "Chunked",
    "Descent",
    "Final",
    "Flow",
    "Given",
    "Linear",
    "Logarithmic",
    "LossBelow",
    "Memory",
    "Observable",
    "OneCycle",
    "Outcome",
    "Patience",
    "Reached",
    "Record",
    "Sgd",
    "Sink",
    "Solution",
    "Steps",
    "Switch",
    "snapshots",
]

check_torch(torch.__version__)
