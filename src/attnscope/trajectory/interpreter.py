"""Whether Python runs such that Zarr works."""

from __future__ import annotations

import sys

from attnscope.errors import AttnscopeError


def check_interpreter() -> None:
    """Refuse ``python -O`` with a Zarr that it breaks.

    Zarr 3.1.6 takes an entry out of a group's metadata inside an ``assert``, which ``-O`` leaves
    out, and then cannot read a group (zarr-python, issue 4362; mended in later versions).

    Raises:
        AttnscopeError: it is such a Zarr.
    """
    if not sys.flags.optimize:
        return
    import zarr
    from zarr.core.group import GroupMetadata

    try:
        GroupMetadata.from_dict({"zarr_format": 3, "node_type": "group", "attributes": {}})
    except TypeError:
        raise AttnscopeError(
            f"Zarr {zarr.__version__}, which keeps trajectories, cannot read its own files under "
            "`python -O`: expected Python without -O and without PYTHONOPTIMIZE, or a later Zarr."
        ) from None
