"""What can be asked of a trajectory: its claims, figures and tables, and the spec behind it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from attnscope.bounds import Count, check_fields
from attnscope.errors import AttnscopeError
from attnscope.experiment.spec import Flat, changed, flat
from attnscope.limits import RUNS
from attnscope.markup import fill
from attnscope.scales import SCALES, Scale
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    import xarray as xr

    from attnscope.claims import Claim
    from attnscope.claims.diagnosis import Diagnosis
    from attnscope.experiment.job import Job
    from attnscope.report.attention_maps import AttentionMaps
    from attnscope.report.figure import Figure
    from attnscope.report.overview import Overview
    from attnscope.report.page import Table

FILE = "study_file"
"""What a module that was loaded from a file of studies calls that file."""
KNOWN: dict[str, type[Experiment]] = {}
"""Experiments of somebody's own that this process has defined, by name."""


@dataclass(frozen=True)
class Experiment(metaclass=Flat):
    """A spec, the runs it describes, and what is made of them.

    :class:`Study` trains models, :class:`Measurement` reads what is there. Both have the same
    trajectory, the same claims and the same report. Fields are the spec, with the paper's values as
    defaults, and annotations declare their bounds (:mod:`attnscope.bounds`). Everything below has
    an empty default; ``run`` is what was recorded, see :class:`Readings`.
    """

    seeds: Count = 5
    """Number of runs of each case, with seeds 0, 1, ..."""

    citation: ClassVar[str] = ""
    """Where it comes from."""
    quick: ClassVar[Mapping[str, Any]] = {}
    """Settings that differ at ``--scale quick``, by their flat names."""
    desk: ClassVar[Mapping[str, Any]] = {}
    """Settings that differ at ``--scale desk``; none where the paper's own take an hour or less."""
    renamed: ClassVar[Mapping[str, str | None]] = {}
    """Old spellings of settings, with the new ones; ``None`` for what is no longer said."""
    labels: ClassVar[Mapping[str, Sequence[str | int | float]]] = {}
    """Labels of dimensions that readings lie along, by the dimension's name."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__repr__" not in vars(cls):
            # One line, also for the dataclasses that studies are.
            cls.__repr__ = Experiment.__repr__  # type: ignore[method-assign]
        if not _is_ours(cls.__module__):
            KNOWN[cls.name()] = cls

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def __repr__(self) -> str:
        default = type(self)().to_json()
        changes = {n: v for n, v in self.to_json().items() if v != default.get(n)}
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in changes.items())})"

    def _repr_html_(self) -> str:
        """Show the settings, for notebooks; what is not the paper's stands out."""
        default = type(self)().to_json()
        rows = [(n, _said(value), value != default.get(n)) for n, value in self.to_json().items()]
        shown = fill("notebook/settings", name=self.name(), runs=len(self.runs()), rows=rows)
        return str(shown)

    def check(self) -> None:
        """Check what the bounds of single fields cannot say; raise an ``AttnscopeError``."""

    @classmethod
    def name(cls) -> str:
        """Return the name by where it lies: ``lu2021.sen``, ``mine.py:Mine``, ``module:Class``."""
        if _is_ours(cls.__module__):
            return ".".join(cls.__module__.split(".")[2:4])
        if file := cls.file():
            return f"{Path(file).name}:{cls.__qualname__}"
        return f"{cls.__module__}:{cls.__qualname__}"

    @classmethod
    def file(cls) -> str:
        """Return the file that a study of somebody's own was loaded from, as it was named."""
        return str(getattr(sys.modules.get(cls.__module__), FILE, ""))

    @classmethod
    def at(cls, scale: Scale, **changes: Any) -> Self:
        """Return the spec at a scale, with settings changed by their flat names."""
        if scale not in SCALES:
            known = " or ".join(repr(each) for each in SCALES)
            raise AttnscopeError(f"scale = {str(scale)[:80]!r}: expected {known}.")
        smaller = {} if scale == "paper" else getattr(cls, scale)
        return changed(cls(), {**smaller, **changes})

    def but(self, **changes: Any) -> Self:
        """Return the spec with settings changed by their flat names: ``study.but(m=30)``."""
        return changed(self, changes)

    @classmethod
    def from_json(cls, spec: Mapping[str, Any]) -> Self:
        """Rebuild a spec from the JSON in a run's manifest, also an older one."""
        return changed(cls(), spec, old=True)

    def to_json(self) -> dict[str, Any]:
        """Return all settings as JSON values, by their flat names."""
        return flat(self)

    def identity(self) -> str:
        """Return a short name for exactly this spec: ``lu2021.sen-3f2a91bc``."""
        text = json.dumps(self.to_json(), sort_keys=True)
        short = self.name().split(":")[-1]
        return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def departures(self) -> str:
        """Say in which settings the spec differs from the paper's, seeds aside."""
        default = type(self)().to_json()
        return ", ".join(
            f"{name} = {_said(value)} (paper: {_said(default.get(name))})"
            for name, value in self.to_json().items()
            if name != "seeds" and value != default.get(name)
        )

    @property
    def cases(self) -> tuple[str, ...]:
        """The names of what is compared, such as three models; one unless a subclass says so."""
        return ("run",)

    @property
    def unit(self) -> float | None:
        """Time of a step; ``None`` where steps have no length."""
        return 1.0

    def runs(self) -> list[tuple[str, int]]:
        """Return case and seed of every run, seeds outermost so that a prefix is balanced.

        Raises:
            AttnscopeError: there are more than :mod:`attnscope.limits` allows.
        """
        self.check_runs(self.seeds * len(self.cases))
        return [(case, seed) for seed in range(self.seeds) for case in self.cases]

    def check_runs(self, count: int) -> None:
        """Refuse more runs than a slipped digit would explain, before they are listed."""
        RUNS.check(count, f"{self.name()} with seeds = {self.seeds} has {count:,} runs")

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of the runs, round by round; all in one round unless it says so.

        Runs of a later round begin when all earlier ones are complete.
        """
        return (tuple(range(len(self.runs()))),)

    def job(self, case: str, seed: int, earlier: Readings | None = None) -> Job:
        """Return one run, ready to go.

        Args:
            case: what is compared.
            seed: of this run.
            earlier: what earlier rounds recorded, for a run of a later one.
        """
        raise AttnscopeError(f"{self.name()} cannot be run: it reads what somebody recorded.")

    def read(self, tree: xr.DataTree) -> Readings:
        """Return the readings of a trajectory of this experiment."""
        return Readings(tree, self.labels)

    def truth(self) -> xr.Dataset | Mapping[str, Any]:
        """Return the ground truth, for the group ``data``."""
        return {}

    def theory(self, run: Readings) -> xr.Dataset | Mapping[str, Any]:
        """Predict readings on the run's own coordinates, for the group ``theory``.

        Arrays may lie along ``case`` and ``seed``, as readings do, or along ``run``.
        """
        return {}

    def claims(self) -> Sequence[Claim]:
        """Return the statements that are decided."""
        return ()

    def margins(self) -> Mapping[str, tuple[float, str]]:
        """Return by the keys of claims how far theory puts these settings inside their range.

        A number above 0 says that the claim should hold, one below that it should not; the text
        names the boundary between them, as in ``{"fits": (HD - Nn, "HD = Nn")}``. Phase diagrams
        of a sweep draw where it is 0, and ask at thousands of settings: they give up on an answer
        that takes long.
        """
        return {}

    def figures(self, run: Readings) -> Sequence[Figure]:
        """Draw what was recorded."""
        return ()

    def tables(self, run: Readings) -> Sequence[Table]:
        """Tabulate what was recorded."""
        return ()

    def printed(self, run: Readings) -> Sequence[Table]:
        """Return the tables that the command line prints beside the claims."""
        return ()

    def maps(self, run: Readings) -> Sequence[AttentionMaps]:
        """Return attention over training, a layer each."""
        return ()

    def overview(self, run: Readings) -> Overview | None:
        """Return the first screen of the report, if there is more than claims and figures."""
        return None

    def diagnose(self, run: Readings) -> tuple[Sequence[Diagnosis], str]:
        """Say what is the matter with the model, and what could not be told."""
        return (), ""

    def title(self) -> str:
        """Return the heading of the report: the name, of somebody's own study its class."""
        return self.name().split(":")[-1]

    def describe(self) -> str:
        """Say in a phrase what a run is, for the head of the report."""
        return "measurements"

    def introduction(self) -> str:
        """Say in a sentence how many runs of what there are, for the head of the report."""
        return (
            f"{len(self.runs())} runs ({len(self.cases)} cases, {self.seeds} seeds) of "
            f"{self.describe()}."
        )

    def again(self) -> tuple[str, str] | None:
        """Return a command line and Python that make such a run, if `attnscope run` does not."""
        return None


def _is_ours(module: str) -> bool:
    """Return whether a module lies in this package, two rooms deep: studies, paper, study."""
    return module.split(".")[0] == __name__.split(".")[0] and module.count(".") > 2


def _said(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
