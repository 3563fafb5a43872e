"""What tables, figures and claims of the agreement study all look at, computed once."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from attnscope.probes.agreement import mean_agreement, mean_defined, shuffled_baseline
from attnscope.probes.kendall import kendall_tau
from attnscope.studies.snell2021._agreement_lag import half_step
from attnscope.studies.snell2021._agreement_paper import (
    ALPHA_BETA,
    ALPHA_FR,
    ALPHA_UF,
    DELTA_UF,
    UF_PX,
)
from attnscope.studies.snell2021._agreement_predictions import tied_baseline
from attnscope.studies.snell2021._agreement_table import (
    Convention,
    Entry,
    Measure,
    Performance,
    Runs,
    agreement_table,
    curves,
)

Rows = NDArray[np.float64]
SHUFFLE = 0
"""Seed of the one shuffle that the released code takes for its baseline."""


class Evidence:
    """Numbers of one trajectory; each is computed when it is first asked for.

    Args:
        tree: the trajectory.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree
        self.runs = Runs(tree, "dev")
        self._tables: dict[tuple[str, ...], dict[str, Entry]] = {}

    def table(
        self,
        split: str = "dev",
        by: Measure = "top",
        performance: Performance = "accuracy",
        convention: Convention = "paper",
    ) -> dict[str, Entry]:
        """Return :func:`agreement_table`."""
        key = (split, by, performance, convention)
        if key not in self._tables:
            self._tables[key] = agreement_table(self.tree, split, by, performance, convention)
        return self._tables[key]

    @cached_property
    def curves(self) -> xr.Dataset:
        """Normal runs, the frozen one and the uniform one over steps."""
        return curves(self.tree)

    def final(self, split: str = "dev", performance: Performance = "accuracy") -> float:
        """Return ξ*: the mean performance of B, C, ... at the end, in percent."""
        name, scale = ("bleu", 1.0) if performance == "bleu" else (f"accuracy_{split}", 100.0)
        ends = [self.runs.curve(name, run)[-1] for run in self.runs.others]
        return float(scale * np.mean(ends))

    @cached_property
    def uniform_course(self) -> NDArray[np.float64]:
        """A(α, β^uf(τ)) over the checkpoints of the uniform run, in percent (A.7)."""
        probe = self.runs.rows("lexical", self.runs.uniform)
        return np.array([self.agree(self.runs.alpha, at) for at in probe])

    @property
    def beta_uf(self) -> Rows:
        """β^uf where it agrees best with α."""
        return self.runs.rows("lexical", self.runs.uniform)[int(np.argmax(self.uniform_course))]

    def agree(self, u: Rows, v: Rows) -> float:
        """Return A(u, v) in percent, over the rows that both have."""
        u, v, mask = self._shared(u, v)
        return 100 * mean_agreement(u, v, mask).value

    def shuffled(self, u: Rows, v: Rows) -> float:
        """Return A(u, v shuffled once in every row) in percent, the released code's baseline."""
        u, v, mask = self._shared(u, v)
        return 100 * shuffled_baseline(u, v, mask, seed=SHUFFLE).value

    def tau(self, u: Rows, v: Rows) -> float:
        """Return the mean of Kendall's τ, times 100."""
        return 100 * mean_defined(kendall_tau(*self._shared(u, v))).value

    def tied(self, v: Rows) -> float:
        """Return what a random position agrees with v, ties counted, in percent."""
        return 100 * tied_baseline(v, self.runs.cells.mask[: len(v)])

    def pair(self, quantity: str, trained: bool = True) -> tuple[Rows, Rows]:
        """Return u and v of a quantity, in the paper's order.

        Args:
            quantity: one of the table's.
            trained: v at its step of the table; otherwise that of its run before training, step 0.
        """
        runs = self.runs
        u = {
            ALPHA_UF: lambda: runs.alpha,
            UF_PX: lambda: self._at("lexical", runs.uniform, self.table()[UF_PX].step),
            DELTA_UF: lambda: runs.delta,
            ALPHA_BETA: lambda: runs.alpha,
            ALPHA_FR: lambda: runs.alpha,
        }[quantity]()
        if quantity == UF_PX:
            return u, runs.beta_px if trained else runs.rows("lexical", runs.proxy)[0]
        name, run = {
            ALPHA_UF: ("lexical", runs.uniform),
            DELTA_UF: ("lexical", runs.uniform),
            ALPHA_BETA: ("lexical", runs.others[0]),
            ALPHA_FR: ("alpha", runs.frozen),
        }[quantity]
        step = self.table()[quantity].step if trained else int(runs.steps[0])
        return u, self._at(name, run, step)

    def prediction(self, name: str) -> Rows:
        """Return a prediction from the data alone, shape ``(row, position)``."""
        return self.runs.cells.padded(self.tree[f"theory/{name}_dev"].to_numpy())

    def permuted(self, name: str) -> NDArray[np.float64]:
        """Return A(α, v) in percent, v from training pairs put together at random."""
        return np.asarray(self.tree[f"theory/{name}_permuted"].to_numpy(), dtype=float)

    def halves(self, case: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the steps where knowledge and concentration are half way, run by run."""
        found = self.curves.isel(run=np.flatnonzero(self.curves["case"].to_numpy() == case))
        steps = self.runs.steps
        known, focused = (
            np.array([half_step(steps, curve) for curve in found[name].to_numpy()])
            for name in ("knowledge", "concentration")
        )
        return known, focused

    def lags(self, case: str) -> NDArray[np.float64]:
        """Return by how many steps attention is half way after knowledge, run by run."""
        known, focused = self.halves(case)
        return focused - known

    def _at(self, name: str, run: int, step: int) -> Rows:
        return self.runs.rows(name, run)[int(np.flatnonzero(self.runs.steps == step)[0])]

    def _shared(self, u: Rows, v: Rows) -> tuple[Rows, Rows, NDArray[np.bool_]]:
        rows, width = min(len(u), len(v)), min(u.shape[1], v.shape[1])
        mask = self.runs.cells.mask[:rows, :width]
        return u[:rows, :width], v[:rows, :width], mask


class _Kept:
    """A tree as a key: the same one, not one that is equal."""

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree

    def __hash__(self) -> int:
        return id(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and self.tree is other.tree


def evidence(tree: xr.DataTree) -> Evidence:
    """Return the evidence of a trajectory; that of the last one is kept."""
    return _evidence(_Kept(tree))


@lru_cache(maxsize=1)
def _evidence(kept: _Kept) -> Evidence:
    return Evidence(kept.tree)
