"""Sweeps: a study over a grid of settings, where its claims stop holding, and the pictures of it.

::

    tree = attnscope.sweep(Sen(seeds=3), {"m": [5, 10, 20], "dim": [5, 15]})
    tree["findings"].verdict.sel(claim="corollary1-FC")     # along m and dim
    attnscope.open_point(tree, m=5, dim=15)                 # the trajectory of one point
"""

from attnscope.sweeps.axes import Axis, Grid, axes_of
from attnscope.sweeps.folder import SweepFolder
from attnscope.sweeps.runner import sweep
from attnscope.sweeps.tree import open_point, open_sweep

__all__ = ["Axis", "Grid", "SweepFolder", "axes_of", "open_point", "open_sweep", "sweep"]
