"""The rows of Tables 2 to 8 and 10 of Snell 2021, from the trajectories of a study.

Which run each symbol comes from, as in the paper's notation and in what the released code reads:

    α       attention of the first normal run (A), at its step of best validation accuracy
    β       lexical probe of the second normal run (B), at the step of largest agreement
    β^uf    lexical probe of the uniform run, at the step of largest agreement (A.7)
    β^px    lexical probe of the proxy, at its step of lowest validation loss
    Δ       saliency in run A, at the step of α
    α^fr    attention learned while all else is frozen, at the step of largest agreement (A.6)
    α̂, p̂    attention and performance of the normal runs B, C, ..., averaged over them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from attnscope.errors import AttnscopeError
from attnscope.probes.agreement import (
    contextual,
    mean_agreement,
    mean_defined,
    random_baseline,
)
from attnscope.probes.kendall import kendall_tau
from attnscope.studies.snell2021._agreement_cells import Cells

QUANTITIES = ("alpha_uf", "uf_px", "delta_uf", "alpha_beta", "alpha_fr")
"""A(α, β^uf), A(β^uf, β^px), A(Δ, β^uf), A(α, β), A(α, α^fr)."""
Measure = Literal["top", "tau"]
Performance = Literal["accuracy", "bleu"]
Convention = Literal["paper", "released"]
TAU_ROWS = 3000
"""Rows that Kendall's τ is averaged over at most; each takes L² comparisons."""

HELD = 6
"""Quantities that are held in memory, laid out as rows."""


@dataclass(frozen=True)
class Entry:
    """One cell of the table.

    Args:
        value: the agreement, in percent (τ times 100).
        baseline: the same for random order, Â; 0 for τ.
        step: where the largest agreement over the checkpoints is.
        xi: ξ, the performance of other runs when their attention agrees better, in percent.
        reached: whether they ever did; if not, ξ is that of the end, ξ*.
        rows: rows the agreement was averaged over.
    """

    value: float
    baseline: float
    step: int
    xi: float
    reached: bool
    rows: int


class Runs:
    """The runs of a study by their part in the table, read when they are asked for.

    Args:
        tree: the trajectory.
        split: ``"dev"`` or ``"train"``.
        performance: by which the step of α is the best one on validation.
    """

    def __init__(
        self, tree: xr.DataTree, split: str = "dev", performance: Performance = "accuracy"
    ) -> None:
        if split not in ("dev", "train"):
            raise AttnscopeError(f"split = '{split}': expected 'dev' or 'train'.")
        self.tree, self.split = tree, split
        self._laid_out: dict[tuple[str, int], NDArray[np.float64]] = {}
        self.cells = Cells(tree[f"data/length_{split}"].to_numpy())
        self.steps: NDArray[np.float64] = tree["observables/time"].to_numpy()
        case = tree["observables"]["case"].to_numpy()
        self.normal = [int(i) for i in np.flatnonzero(case == "normal")]
        self.first, self.others = self.normal[0], self.normal[1:]
        self.uniform, self.frozen, self.proxy = (
            int(np.flatnonzero(case == name)[0]) for name in ("uniform", "frozen", "proxy")
        )
        measure = "bleu" if performance == "bleu" else "accuracy_dev"
        self.best = int(np.argmax(self.curve(measure, self.first)))
        self.proxy_best = int(np.argmin(self.curve("loss_dev", self.proxy)))

    def curve(self, name: str, run: int) -> NDArray[np.float64]:
        """Return a number at every step of a run."""
        return np.asarray(self.tree[f"observables/{name}"].isel(run=run).to_numpy(), dtype=float)

    def rows(self, name: str, run: int) -> NDArray[np.float64]:
        """Return a quantity at every step of a run, shape ``(step, row, position)``."""
        if (name, run) not in self._laid_out:
            flat = self.tree[f"observables/{name}_{self.split}"].isel(run=run).to_numpy()
            if len(self._laid_out) >= HELD:
                self._laid_out.pop(next(iter(self._laid_out)))
            self._laid_out[name, run] = self.cells.prefix(flat.shape[-1]).padded(flat)
        return self._laid_out[name, run]

    @property
    def alpha(self) -> NDArray[np.float64]:
        """Attention that the others are compared with, shape ``(row, position)``."""
        return self.rows("alpha", self.first)[self.best]

    @property
    def beta_px(self) -> NDArray[np.float64]:
        """Lexical probe of the proxy."""
        return self.rows("lexical", self.proxy)[self.proxy_best]

    @property
    def delta(self) -> NDArray[np.float64]:
        """Saliency, of the first rows."""
        return self.rows("delta", self.first)[self.best]


def agreement_table(
    tree: xr.DataTree,
    split: str = "dev",
    by: Measure = "top",
    performance: Performance = "accuracy",
    convention: Convention = "paper",
) -> dict[str, Entry]:
    """Return the row of a data set: the agreement of each pair of quantities, with its ξ.

    Args:
        tree: the trajectory.
        split: validation (Tables 2 to 6) or training texts (7 and 8).
        by: agreement of eq 10, or Kendall's τ (Tables 3 and 4).
        performance: what ξ is in, and by what the step of α is chosen: accuracy, or BLEU (Tables
            4, 6, 8).
        convention: ``"released"`` turns the arguments of A(β^uf, β^px) around and the sign of Δ,
            as the released code does.
    """
    runs = Runs(tree, split, performance)
    measure = _Measure(runs, by)
    seen = {
        "alpha_uf": measure.largest(runs.alpha, runs.rows("lexical", runs.uniform)),
        "uf_px": measure.largest(
            runs.beta_px,
            runs.rows("lexical", runs.uniform),
            turned=convention == "paper",
        ),
        "delta_uf": measure.largest(
            runs.delta if convention == "paper" else -runs.delta,
            runs.rows("lexical", runs.uniform),
        ),
        "alpha_beta": measure.largest(runs.alpha, runs.rows("lexical", runs.others[0])),
        "alpha_fr": measure.largest(runs.alpha, runs.rows("alpha", runs.frozen)),
    }
    name = "bleu" if performance == "bleu" else f"accuracy_{split}"
    scale = 1.0 if performance == "bleu" else 100.0
    reached = np.mean([scale * runs.curve(name, run) for run in runs.others], axis=0)
    curve = np.mean(
        [measure.curve(runs.alpha, runs.rows("alpha", run)) for run in runs.others], axis=0
    )
    out = {}
    for quantity, (value, step, rows) in seen.items():
        xi = contextual(curve, reached, value)
        base = measure.baseline(rows)
        out[quantity] = Entry(value, base, int(runs.steps[step]), xi.xi, xi.reached, rows)
    return out


class _Measure:
    """Agreement in percent, by top positions or by rank correlation."""

    def __init__(self, runs: Runs, by: Measure) -> None:
        if by not in ("top", "tau"):
            raise AttnscopeError(f"by = '{by}': expected 'top' or 'tau'.")
        self.runs, self.by = runs, by

    def one(self, u: NDArray[np.float64], v: NDArray[np.float64]) -> float:
        rows = min(len(u), len(v))
        width = min(u.shape[1], v.shape[1])
        mask = self.runs.cells.mask[:rows, :width]
        u, v = u[:rows, :width], v[:rows, :width]
        if self.by == "top":
            return 100 * mean_agreement(u, v, mask).value
        some = np.unique(np.linspace(0, rows - 1, min(rows, TAU_ROWS)).round().astype(int))
        return 100 * mean_defined(kendall_tau(u[some], v[some], mask[some])).value

    def curve(self, u: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return A(u, v(τ)) over the checkpoints."""
        return np.array([self.one(u, at) for at in v])

    def largest(
        self, u: NDArray[np.float64], v: NDArray[np.float64], turned: bool = False
    ) -> tuple[float, int, int]:
        """Return the largest A(u, v(τ)), or A(v(τ), u), with its checkpoint and number of rows."""
        curve = np.array([self.one(at, u) for at in v]) if turned else self.curve(u, v)
        at = int(np.argmax(curve))
        return float(curve[at]), at, min(len(u), v.shape[1])

    def baseline(self, rows: int) -> float:
        if self.by == "tau":
            return 0.0
        return 100 * random_baseline(self.runs.cells.length[:rows])


def curves(tree: xr.DataTree, split: str = "dev") -> xr.Dataset:
    """Return how each normal run, the frozen and the uniform one come to attend.

    Variables over ``(run, step)``: ``to_uniform``, A(α(step), β^uf) in percent, with β^uf at the
    step where it agrees best with α of run A; ``to_first``, A(α_A, α(step)); ``knowledge``, the
    mean over rows of max_l β; ``concentration``, the mean of 1 - H(α)/log L; ``accuracy``.
    """
    runs = Runs(tree, split)
    measure = _Measure(runs, "top")
    _, best, _ = measure.largest(runs.alpha, runs.rows("lexical", runs.uniform))
    beta_uf = runs.rows("lexical", runs.uniform)[best]
    chosen = [*runs.normal, runs.frozen, runs.uniform]
    kind = str(tree["data"].attrs["kind"])
    variables: dict[str, list[NDArray[np.float64]]] = {}
    for run in chosen:
        alpha, lexical = runs.rows("alpha", run), runs.rows("lexical", run)
        found = {
            "to_uniform": np.array([measure.one(at, beta_uf) for at in alpha]),
            "to_first": measure.curve(runs.alpha, alpha),
            "knowledge": np.array([knowledge(at, kind) for at in lexical]),
            "concentration": np.array([concentration(at, runs.cells.length) for at in alpha]),
            "accuracy": runs.curve(f"accuracy_{split}", run),
        }
        for name, curve in found.items():
            variables.setdefault(name, []).append(curve)
    observed = tree["observables"].to_dataset().isel(run=chosen)
    coords: dict[str, Any] = {
        "case": ("run", observed["case"].to_numpy()),
        "seed": ("run", observed["seed"].to_numpy()),
        "time": ("step", runs.steps),
    }
    return xr.Dataset(
        {name: (("run", "step"), np.stack(found)) for name, found in variables.items()}, coords
    )


def knowledge(lexical: NDArray[np.float64], kind: str) -> float:
    """Return the mean over rows of max_l β: how well the best single position would do."""
    best = np.nanmax(lexical, axis=1)
    return float((expit(best) if kind == "labelled" else np.exp(best)).mean())


def concentration(alpha: NDArray[np.float64], length: NDArray[np.int64]) -> float:
    """Return the mean of 1 - H(α)/log L over rows of two positions or more: 0 when uniform."""
    weights = np.nan_to_num(alpha)
    logs = np.log(np.where(weights > 0, weights, 1.0))
    entropy = -(weights * logs).sum(axis=1)
    more = length > 1
    return float((1 - entropy[more] / np.log(length[more])).mean())
