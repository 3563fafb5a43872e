"""A laboratory for how attention learns, and why it learned this.

Train a model with its whole trajectory recorded, lay closed-form theory over it, and read in words
and numbers whether the theory held::

    import attnscope
    from attnscope.studies.lu2021 import Sen

    run = attnscope.run(Sen())              # an xarray.DataTree
    for finding in attnscope.findings(run):
        print(finding.verdict, finding.sentence)
    attnscope.write_report(run)             # one HTML file

Names are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnscope.engines import (
        Descent,
        Final,
        Flow,
        Given,
        Linear,
        Logarithmic,
        LossBelow,
        Observable,
        Patience,
        Record,
        snapshots,
    )
    from attnscope.errors import AttnscopeError
    from attnscope.studies.reporting import write_report
    from attnscope.studies.runner import findings, run
    from attnscope.training import train
    from attnscope.trajectory import open_run
    from attnscope.watching import watch

__version__ = "0.1.0"

__all__ = [
    "AttnscopeError",
    "Descent",
    "Final",
    "Flow",
    "Given",
    "Linear",
    "Logarithmic",
    "LossBelow",
    "Observable",
    "Patience",
    "Record",
    "findings",
    "open_run",
    "run",
    "snapshots",
    "train",
    "watch",
    "write_report",
]

_HOMES = {
    "AttnscopeError": "errors",
    "findings": "studies.runner",
    "open_run": "trajectory",
    "run": "studies.runner",
    "train": "training",
    "watch": "watching",
    "write_report": "studies.reporting",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'engines')}"), name)
