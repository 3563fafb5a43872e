"""What every study is: a spec, how to build its runs, its claims and its figures."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from attnscope.errors import AttnscopeError, nearest

if TYPE_CHECKING:
    import xarray as xr
    from torch import nn

    from attnscope.claims import Claim
    from attnscope.engines import Descent, Flow, LossBelow, Patience, Record
    from attnscope.engines.parameters import Loss
    from attnscope.report.attention_maps import AttentionMaps
    from attnscope.report.figure import Figure
    from attnscope.report.page import Table
    from attnscope.watching.diagnosis.base import Diagnosis

Scale = Literal["quick", "paper"]


@dataclass(frozen=True)
class Problem:
    """One run, ready to go: what learns, from what, and what is written down."""

    model: nn.Module
    loss: Loss
    records: Sequence[Record]
    stop: Sequence[LossBelow | Patience] = ()


@dataclass(frozen=True)
class Study:
    """The spec of a study; the paper's own values are the defaults.

    A subclass adds fields, and the methods that say what is run and what is made of it.
    """

    seeds: int = 5
    """Number of runs of each case, with seeds 0, 1, ..."""
    engine: Literal["flow", "descent"] = "flow"
    """Gradient flow, or gradient descent step by step."""
    lr: float = 0.1
    """Learning rate; time = learning rate × epochs."""
    epochs: int = 5000
    """Full-batch steps of gradient descent that the run stands for."""
    points: int = 201
    """Record points, evenly spaced."""
    correct: bool = False
    """Let the flow follow gradient descent at the finite learning rate, not its limit."""

    citation: ClassVar[str] = ""
    """Where the study comes from."""
    quick: ClassVar[dict[str, Any]] = {}
    """Fields that differ at ``--scale quick``."""

    def __post_init__(self) -> None:
        for name, least in (("seeds", 1), ("epochs", 1), ("points", 2)):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        if not 0 < self.lr < math.inf:
            raise AttnscopeError(f"lr = {self.lr}: expected a finite learning rate above 0.")
        if self.engine not in ("flow", "descent"):
            raise AttnscopeError(f"engine = '{self.engine}': expected 'flow' or 'descent'.")

    @classmethod
    def name(cls) -> str:
        """Return the study's name, from where its module lies: ``lu2021.sen``."""
        prefix = f"{__package__}."
        if cls.__module__.startswith(prefix):
            return cls.__module__.removeprefix(prefix)
        return f"{cls.__module__}:{cls.__qualname__}"

    @classmethod
    def at(cls, scale: Scale) -> Self:
        """Return the spec at a scale."""
        if scale not in ("quick", "paper"):
            raise AttnscopeError(f"scale = '{scale}': expected 'quick' or 'paper'.")
        return cls(**cls.quick) if scale == "quick" else cls()

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Self:
        """Rebuild a spec from the JSON in a run's manifest."""
        known = {field.name: field for field in dataclasses.fields(cls)}
        for name in spec:
            if name not in known:
                raise AttnscopeError(
                    f"{cls.name()} has no field '{name}'.{nearest(name, known)} "
                    f"Expected some of: {', '.join(known)}."
                )
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in spec.items()
        }
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return the spec as JSON values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}

    def identity(self) -> str:
        """Return a short name for exactly this spec: ``lu2021.sen-3f2a91bc``."""
        text = json.dumps(self.to_json(), sort_keys=True)
        short = self.name().split(":")[-1]
        return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def departures(self) -> str:
        """Say in which fields the spec differs from the paper's, seeds aside; empty if in none."""
        default = type(self)()
        other = [
            f"{name} = {value} (paper: {getattr(default, name)})"
            for name, value in vars(self).items()
            if name != "seeds" and value != getattr(default, name)
        ]
        return ", ".join(other)

    @property
    def time(self) -> float:
        """The end of the run: learning rate × epochs."""
        return self.lr * self.epochs

    def make_engine(self, case: str = "", seed: int = 0) -> Flow | Descent:
        """Return the engine of a run; the same for all of them unless a study says otherwise.

        All runs of a study share the axis of time. If their learning rates differ, either the
        record points are multiples of each of them, or time counts steps: ``Descent(tick=1)``.
        """
        from attnscope.engines import Descent, Flow

        if self.engine == "flow":
            return Flow(lr=self.lr, correct=self.correct)
        return Descent(lr=self.lr)

    def course(self) -> str:
        """Say in a phrase how long runs are and what moves them, for the head of the report."""
        engine = "gradient flow" if self.engine == "flow" else "gradient descent"
        return f"{self.epochs:,} epochs by {engine}"

    def runs(self) -> list[tuple[str, int]]:
        """Return case and seed of every run, seeds outermost so that a prefix is balanced."""
        return [(case, seed) for seed in range(self.seeds) for case in self.cases()]

    def rounds(self) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of the runs, round by round; all in one round unless a study says so.

        Runs of a later round begin when all earlier ones are complete, see :meth:`build_after`.
        """
        return (tuple(range(len(self.runs()))),)

    def cases(self) -> tuple[str, ...]:
        """Return the names of what is compared, such as three models."""
        raise NotImplementedError

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one case with one seed."""
        raise NotImplementedError

    def build_after(self, case: str, seed: int, tree: xr.DataTree) -> Problem:
        """Make a run of a later round, knowing the trajectories of the earlier ones.

        Its records have the shapes of those of :meth:`build`, which lays out the store.

        Args:
            case: what is compared.
            seed: of this run.
            tree: all runs so far; what was not reached yet is NaN.
        """
        return self.build(case, seed)

    def truth(self) -> xr.Dataset:
        """Return the ground truth, for the group ``data``."""
        raise NotImplementedError

    def theory(self, tree: xr.DataTree) -> xr.Dataset:
        """Predict observables on the run's own coordinates, for the group ``theory``."""
        raise NotImplementedError

    def claims(self) -> tuple[Claim, ...]:
        """Return the statements that this study decides."""
        raise NotImplementedError

    def figures(self, tree: xr.DataTree) -> list[Figure]:
        """Draw the trajectory."""
        raise NotImplementedError

    def tables(self, tree: xr.DataTree) -> list[Table]:
        """Tabulate the trajectory."""
        return []

    def printed(self, tree: xr.DataTree) -> list[Table]:
        """Return the tables that the command line prints beside the claims."""
        return []

    def title(self) -> str:
        """Return the heading of the report."""
        return self.name()

    def introduction(self) -> str:
        """Say in a sentence how many runs of what there are, for the head of the report."""
        return (
            f"{len(self.runs())} runs ({len(self.cases())} cases, {self.seeds} seeds) of "
            f"{self.course()}."
        )

    def again(self) -> tuple[str, str] | None:
        """Return a command line and Python that make such a run, if `attnscope run` does not."""
        return None

    def diagnose(self, tree: xr.DataTree) -> tuple[Sequence[Diagnosis], str]:
        """Say what is the matter with the model, and what could not be told."""
        return (), ""

    def maps(self, tree: xr.DataTree) -> list[AttentionMaps]:
        """Return attention over training, a layer each."""
        return []
