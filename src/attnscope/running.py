"""``attnscope.run``: a study by its name or as a value, with progress where a notebook shows it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnscope.catalogue import load
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment, Listener
from attnscope.experiment import run as run_experiment
from attnscope.notebook import in_notebook, progress_bar
from attnscope.scales import Scale

if TYPE_CHECKING:
    import xarray as xr


def run(
    study: Experiment | str,
    out: str | Path | None = None,
    *,
    scale: Scale = "paper",
    settings: dict[str, Any] | None = None,
    progress: bool | None = None,
    listener: Listener | None = None,
    **how: Any,
) -> xr.DataTree:
    """Run a study and return its trajectory.

    A run of the same spec that is in the folder already is found: what is complete is not repeated,
    and what is not goes on. A run of another spec is left alone.

    Args:
        study: a study with its settings, such as ``Sen(m=30)``, or the name of one, such as
            ``"lu2021.sen"``, ``"sen"`` or ``"mine.py"``.
        out: the run's folder; ``runs/<name>-<hash of the spec>`` unless given.
        scale: ``"quick"`` or ``"paper"``; of a study that is named.
        settings: settings of a study that is named, by their flat names: ``{"m": 30}``.
        progress: show a bar; in notebooks unless told otherwise.
        listener: hears how far the runs are, in place of a bar.
        **how: ``workers``, ``resume``, ``again``, ``overwrite``; see
            :func:`attnscope.experiment.run`.

    Returns:
        The trajectory, with the group ``theory``.

    Raises:
        AttnscopeError: there is no such study, or anything else that a person can mend.
    """
    if isinstance(study, str):
        study = load(study).at(scale, **(settings or {}))
    elif isinstance(study, type) or not isinstance(study, Experiment):
        raise AttnscopeError(
            f"run({study!r:.80}): expected a study with its settings, such as Sen(m=30), or a name."
        )
    elif scale != "paper" or settings:
        raise AttnscopeError(
            "scale and settings are those of a study that is named: expected them in the study "
            f"itself, as in {type(study).__name__}.at({scale!r}, ...)."
        )
    if listener is None and (in_notebook() if progress is None else progress):
        with progress_bar(study.name(), len(study.runs())) as bar:
            return run_experiment(study, out, listener=bar, **how)
    return run_experiment(study, out, listener=listener, **how)
