"""A laboratory for how attention learns, and why it learned this.

Train a model with its whole trajectory recorded, lay closed-form theory over it, and read in words
and numbers whether the theory held::

    import attnscope

    run = attnscope.run("lu2021.sen")       # an xarray.DataTree
    for finding in attnscope.findings(run):
        print(finding.verdict, finding.sentence)
    attnscope.write_report(run)             # one HTML file

Names are imported when they are first used, so that the command line answers at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnscope.lazy import attach

if TYPE_CHECKING:
    from attnscope.claims import Claim, Finding, above, below, within
    from attnscope.comparison import compare
    from attnscope.engines import (
        Adam,
        Chunked,
        Descent,
        Final,
        Flow,
        Given,
        Linear,
        Logarithmic,
        LossBelow,
        Observable,
        Patience,
        Reached,
        Record,
        Sgd,
        Steps,
        snapshots,
    )
    from attnscope.errors import AttnscopeError
    from attnscope.experiment import Measurement, Problem, Study
    from attnscope.notebook import figures, show
    from attnscope.prediction import predict
    from attnscope.report import Figure, Table, bands, curves, ends
    from attnscope.results import findings, write_report
    from attnscope.running import run
    from attnscope.sweeps import open_point, open_sweep, sweep
    from attnscope.training import train
    from attnscope.trajectory import Readings, crossing, final, initial, open_run
    from attnscope.watched.announcing import watch

__version__ = "0.2.0"

_HOMES: dict[str, tuple[str, ...]] = {
    "claims": ("Claim", "Finding", "above", "below", "within"),
    "comparison": ("compare",),
    "engines": (
        "Adam",
        "Chunked",
        "Descent",
        "Final",
        "Flow",
        "Given",
        "Linear",
        "Logarithmic",
        "LossBelow",
        "Observable",
        "Patience",
        "Reached",
        "Record",
        "Sgd",
        "Steps",
        "snapshots",
    ),
    "errors": ("AttnscopeError",),
    "experiment": ("Measurement", "Problem", "Study"),
    "notebook": ("figures", "show"),
    "prediction": ("predict",),
    "report": ("Figure", "Table", "bands", "curves", "ends"),
    "results": ("findings", "write_report"),
    "running": ("run",),
    "sweeps": ("open_point", "open_sweep", "sweep"),
    "training": ("train",),
    "trajectory": ("Readings", "crossing", "final", "initial", "open_run"),
    "watched.announcing": ("watch",),
}
__getattr__, __dir__, __all__ = attach(__name__, _HOMES)
