"""Transitional."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from attnscope.claims import Claim as NewClaim
from attnscope.claims import Criterion, call
from attnscope.errors import AttnscopeError
from attnscope.experiment import Experiment, Problem
from attnscope.experiment.job import Job


def Claim(*, key: str, sentence: str, source: str, paper: str, statistic: Any, criterion: Criterion, control_sentence: str, control: Any, each: bool = True, reason: str = "", measure: str = "") -> NewClaim:
    return NewClaim(key, sentence, call, statistic, criterion, (control, control_sentence), source, paper, measure, each, reason)


class _Cases(tuple):  # type: ignore
    def __call__(self) -> tuple[str, ...]:
        return tuple(self)


@dataclass(frozen=True)
class Study(Experiment):
    seeds: int = 5
    engine: Literal["flow", "descent"] = "flow"
    lr: float = 0.1
    epochs: int = 5000
    points: int = 201
    correct: bool = False

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        own = cls.__dict__.get("cases")
        if callable(own):
            cls.cases = property(lambda self: _Cases(own(self)))  # type: ignore

    def __post_init__(self) -> None:
        for name, least in (("seeds", 1), ("epochs", 1), ("points", 2)):
            if getattr(self, name) < least:
                raise AttnscopeError(f"{name} = {getattr(self, name)}: expected {least} or more.")
        if not 0 < self.lr < math.inf:
            raise AttnscopeError(f"lr = {self.lr}: expected a finite learning rate above 0.")
        if self.engine not in ("flow", "descent"):
            raise AttnscopeError(f"engine = '{self.engine}': expected 'flow' or 'descent'.")

    @property
    def time(self) -> float:
        return self.lr * self.epochs

    @property
    def unit(self) -> float | None:
        return self.lr

    def make_engine(self, case: str = "", seed: int = 0) -> Any:
        from attnscope.engines import Descent, Flow

        if self.engine == "flow":
            return Flow(lr=self.lr, correct=self.correct)
        return Descent(lr=self.lr)

    def course(self) -> str:
        engine = "gradient flow" if self.engine == "flow" else "gradient descent"
        return f"{self.epochs:,} epochs by {engine}"

    def describe(self) -> str:
        return self.course()

    def build(self, case: str, seed: int) -> Problem:
        raise NotImplementedError

    def build_after(self, case: str, seed: int, tree: Any) -> Problem:
        return self.build(case, seed)

    def job(self, case: str, seed: int, earlier: Any = None) -> Job:
        p = self.build(case, seed) if earlier is None else self.build_after(case, seed, earlier)
        engine = self.make_engine(case, seed)
        return Job(p.records, p.model, self.time, engine.grid, lambda sink, resume: engine.run(p.model, p.loss, time=self.time, record=p.records, stop=p.stop, sink=sink, resume=resume))
