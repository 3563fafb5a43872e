"""What theories of attention read of a watched run, to be laid on one axis."""

from __future__ import annotations

import xarray as xr

from attnscope.experiment.one_axis import VIEWS, Curve
from attnscope.watched.course import course

AXES = (("layer",), ("layer", "head"), ("layer", "head", "product"))


def curves_of(tree: xr.DataTree) -> dict[str, Curve]:
    """Return the readings that theories speak of, as far as they were recorded."""
    names = {name for view in VIEWS for name in view.readings}
    names |= {name for view in VIEWS for name, *_ in view.beside}
    found: dict[str, Curve] = {}
    for name in sorted(names):
        for axes in AXES:
            known = course(tree, name, *axes)
            if known is not None:
                found[name] = known.steps, known.values
    return found
