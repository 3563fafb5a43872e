"""The numbers of the agreement study: rows of Tables 2 to 8 and 10, and curves over training.

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
from functools import cached_property, partial
from itertools import count
from typing import Literal, NamedTuple, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from attnscope.errors import AttnscopeError
from attnscope.probes.attention_shape import relative_entropy
from attnscope.probes.lexicon.agreement import (
    contextual,
    mean_agreement,
    mean_defined,
    random_baseline,
    shuffled_baseline,
)
from attnscope.probes.lexicon.cells import Cells
from attnscope.probes.lexicon.kendall import kendall_tau
from attnscope.studies.snell2021.agreement.paper import (
    Measure,
    Performance,
    Split,
    Xi,
)
from attnscope.trajectory import Readings, crossing, initial

Convention = Literal["paper", "released"]
Rows = NDArray[np.float64]
"""A quantity at every position, shape ``(row, position)``, or with steps in front."""
TAU_ROWS = 3000
"""Rows that Kendall's τ is averaged over at most; each takes L² comparisons."""
HELD = 6
"""Quantities that are held in memory, laid out as rows."""
LEARNED = 0.05
"""A proxy that has lost less of its first validation loss has hardly trained."""
SHUFFLE = 0
"""Seed of the one shuffle that the released code takes for its baseline."""
STILL = 1e-4
"""A rise below this is none; readings have single precision."""


class Compared(NamedTuple):
    """A quantity that is fixed, and a reading of a run that is taken where it agrees best."""

    fixed: str
    reading: str
    run: str
    symbol: str


COMPARED = {
    "alpha_uf": Compared("alpha", "lexical", "uniform", "β^uf"),
    "uf_px": Compared("beta_px", "lexical", "uniform", "β^uf"),
    "delta_uf": Compared("delta", "lexical", "uniform", "β^uf"),
    "alpha_beta": Compared("alpha", "lexical", "B", "β"),
    "alpha_fr": Compared("alpha", "alpha", "frozen", "α^fr"),
}


@dataclass(frozen=True)
class Entry:
    """One cell of the table.

    Args:
        value: the agreement, in percent (τ times 100).
        baseline: the same for random order, Â; 0 for τ.
        step: where the largest agreement over the checkpoints is.
        xi: ξ, the performance of other runs when their attention agrees better, in percent.
        rows: rows the agreement was averaged over.
    """

    value: float
    baseline: float
    step: int
    xi: Xi
    rows: int


class Evidence:
    """Numbers of one trajectory; each is computed when it is first asked for.

    Runs go by names: A, B, ... for normal ones, and the case for the others.

    Args:
        run: the readings.
        split: ``"dev"`` or ``"train"``.
        performance: by which the step of α is the best one on validation.
    """

    def __init__(
        self, run: Readings, split: Split = "dev", performance: Performance = "accuracy"
    ) -> None:
        if split not in get_args(Split):
            raise AttnscopeError(f"split = '{split}': expected 'dev' or 'train'.")
        self.run, self.split, self.performance = run, split, performance
        observed, letters = run["observables"].to_dataset(), map(chr, count(ord("A")))
        cases = [str(case) for case in observed["case"].to_numpy()]
        names = [next(letters) if case == "normal" else case for case in cases]
        self.observed = observed.assign_coords(run=names)
        self.names = tuple(names)
        self.normal = [name for name, case in zip(names, cases, strict=True) if case == "normal"]
        self.steps: NDArray[np.float64] = observed["time"].to_numpy()
        self.kind = str(run["data"].attrs["kind"])
        self.cells = Cells(run.data.get(f"length_{split}"))
        self._laid_out: dict[tuple[str, str], Rows] = {}
        self._tables: dict[tuple[str, ...], dict[str, Entry]] = {}

    def seed(self, run: str) -> int:
        """Return the seed of a run."""
        return int(self.observed["seed"].sel(run=run))

    def curve(self, name: str, run: str) -> NDArray[np.float64]:
        """Return a number at every step of a run."""
        return np.asarray(self.observed[name].sel(run=run), dtype=float)

    def rows(self, name: str, run: str) -> Rows:
        """Return a quantity at every step of a run, shape ``(step, row, position)``."""
        if (name, run) not in self._laid_out:
            flat = self.observed[f"{name}_{self.split}"].sel(run=run)
            if len(self._laid_out) >= HELD:
                self._laid_out.pop(next(iter(self._laid_out)))
            self._laid_out[name, run] = self.cells.prefix(flat.shape[-1]).padded(flat)
        return self._laid_out[name, run]

    @cached_property
    def best(self) -> int:
        """The checkpoint of run A with the best performance on validation."""
        return int(np.argmax(self.curve(_measured_by(self.performance, "dev")[0], "A")))

    @cached_property
    def proxy_best(self) -> int:
        """The checkpoint of the proxy with the lowest loss on validation."""
        return int(np.argmin(self.curve("loss_dev", "proxy")))

    @cached_property
    def proxy_learned(self) -> float:
        """The share of the proxy's first validation loss that training has taken away."""
        losses = self.curve("loss_dev", "proxy")
        return float(1 - losses[self.proxy_best] / losses[0])

    @property
    def proxy_untrained(self) -> bool:
        """Whether the proxy has hardly trained, so that β^px is its random start."""
        return not self.proxy_learned >= LEARNED

    @cached_property
    def alpha(self) -> Rows:
        """α, which the others are compared with."""
        return self.rows("alpha", "A")[self.best].copy()

    @cached_property
    def delta(self) -> Rows:
        """Δ, of the first rows."""
        return self.rows("delta", "A")[self.best].copy()

    @cached_property
    def beta_px(self) -> Rows:
        """β^px."""
        return self.rows("lexical", "proxy")[self.proxy_best].copy()

    @cached_property
    def uniform_course(self) -> NDArray[np.float64]:
        """A(α, β^uf(τ)) over the checkpoints of the uniform run, in percent (A.7)."""
        return np.array([self.agree(self.alpha, at) for at in self.rows("lexical", "uniform")])

    @cached_property
    def beta_uf(self) -> Rows:
        """β^uf where it agrees best with α."""
        return self.rows("lexical", "uniform")[int(np.argmax(self.uniform_course))].copy()

    def agree(self, u: Rows, v: Rows) -> float:
        """Return A(u, v) in percent, over the rows that both have."""
        return 100 * mean_agreement(*self._shared(u, v)).value

    def shuffled(self, u: Rows, v: Rows) -> float:
        """Return A(u, v shuffled once in every row) in percent, the released code's baseline."""
        return 100 * shuffled_baseline(*self._shared(u, v), seed=SHUFFLE).value

    def tau(self, u: Rows, v: Rows, most: int | None = None) -> float:
        """Return the mean of Kendall's τ, times 100, over so many rows at most."""
        rows = min(len(u), len(v))
        some = np.unique(np.linspace(0, rows - 1, min(rows, most or rows)).round().astype(int))
        return 100 * mean_defined(kendall_tau(*(x[some] for x in self._shared(u, v)))).value

    @cached_property
    def chance(self) -> float:
        """Â of all rows in percent: what a random position agrees with anything."""
        return 100 * random_baseline(self.cells.length)

    def _shared(self, u: Rows, v: Rows) -> tuple[Rows, Rows, NDArray[np.bool_]]:
        rows, width = min(len(u), len(v)), min(u.shape[1], v.shape[1])
        return u[:rows, :width], v[:rows, :width], self.cells.mask[:rows, :width]

    def reached(self, split: Split, performance: Performance) -> NDArray[np.float64]:
        """Return p̂, the performance of B, C, ... over steps, in percent; its end is ξ*."""
        name, scale = _measured_by(performance, split)
        return np.mean([scale * self.curve(name, run) for run in self.normal[1:]], axis=0)

    def table(
        self,
        split: Split = "dev",
        by: Measure = "top",
        performance: Performance = "accuracy",
        convention: Convention = "paper",
    ) -> dict[str, Entry]:
        """Return the row of a data set: the agreement of each pair of quantities, with its ξ.

        Args:
            split: validation (Tables 2 to 6) or training texts (7 and 8).
            by: agreement of eq 10, or Kendall's τ (Tables 3 and 4).
            performance: what ξ is in, and by what the step of α is chosen: accuracy, or BLEU
                (Tables 4, 6, 8).
            convention: ``"released"`` turns the arguments of A(β^uf, β^px) around and the sign of
                Δ, as the released code does.
        """
        key = (split, by, performance, convention)
        if key not in self._tables:
            own = (split, performance) == (self.split, self.performance)
            seen = self if own else Evidence(self.run, split, performance)
            self._tables[key] = seen._table(by, convention)
        return self._tables[key]

    def _table(self, by: Measure, convention: Convention) -> dict[str, Entry]:
        if by not in get_args(Measure):
            raise AttnscopeError(f"by = '{by}': expected 'top' or 'tau'.")
        measure = self.agree if by == "top" else partial(self.tau, most=TAU_ROWS)
        attended = np.mean(
            [
                [measure(self.alpha, at) for at in self.rows("alpha", run)]
                for run in self.normal[1:]
            ],
            axis=0,
        )
        reached, found = self.reached(self.split, self.performance).tolist(), {}
        for quantity, (fixed, reading, run, _) in COMPARED.items():
            u, v = getattr(self, fixed), self.rows(reading, run)
            if (quantity, convention) == ("delta_uf", "released"):
                u = -u
            turned = (quantity, convention) == ("uf_px", "paper")
            agreed = [measure(at, u) if turned else measure(u, at) for at in v]
            best, rows = int(np.argmax(agreed)), min(len(u), v.shape[1])
            xi = contextual(attended, reached, agreed[best])
            base = 0.0 if by == "tau" else 100 * random_baseline(self.cells.length[:rows])
            step = int(self.steps[best])
            found[quantity] = Entry(agreed[best], base, step, Xi(xi.xi, xi.reached), rows)
        return found

    def pair(self, quantity: str, trained: bool = True) -> tuple[Rows, Rows]:
        """Return u and v of a quantity, in the paper's order.

        Args:
            quantity: one of the table's.
            trained: v at its step of the table; otherwise that of its run before training, step 0.
        """
        fixed, reading, run, _ = COMPARED[quantity]
        best = int(np.searchsorted(self.steps, self.table()[quantity].step))
        if quantity == "uf_px":
            v = self.beta_px if trained else self.rows("lexical", "proxy")[0]
            return self.rows(reading, run)[best], v
        return getattr(self, fixed), self.rows(reading, run)[best if trained else 0]

    def prediction(self, name: str) -> Rows:
        """Return a prediction from the data alone."""
        return self.cells.padded(self.run.theory.get(f"{name}_dev"))

    def permuted(self, name: str) -> NDArray[np.float64]:
        """Return A(α, v) in percent, v from training pairs put together at random."""
        return np.asarray(self.run.theory.get(f"{name}_permuted"), dtype=float)

    @cached_property
    def curves(self) -> xr.Dataset:
        """How each normal run, the frozen and the uniform one come to attend, ``(run, step)``.

        ``to_uniform`` is A(α(step), β^uf) in percent, with β^uf at the step where it agrees best
        with α of run A; ``to_first`` is A(α_A, α(step)); ``knowledge`` and ``concentration`` are
        those of the functions below.
        """
        runs = [*self.normal, "frozen", "uniform"]
        found: dict[str, list[list[float]]] = {}
        for run in runs:
            alpha, lexical = self.rows("alpha", run), self.rows("lexical", run)
            curves = {
                "to_uniform": [self.agree(at, self.beta_uf) for at in alpha],
                "to_first": [self.agree(self.alpha, at) for at in alpha],
                "knowledge": [knowledge(at, self.kind) for at in lexical],
                "concentration": [concentration(at, self.cells) for at in alpha],
                "accuracy": self.curve(f"accuracy_{self.split}", run).tolist(),
            }
            for name, curve in curves.items():
                found.setdefault(name, []).append(curve)
        variables = {name: (("run", "step"), np.array(curves)) for name, curves in found.items()}
        return xr.Dataset(variables, {"run": runs, "step": self.steps})

    def halves(self, *runs: str) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the steps where knowledge and concentration are half way, run by run."""
        own = self.curves.sel(run=list(runs))
        return half_way(own["knowledge"]), half_way(own["concentration"])


def evidence(run: Readings) -> Evidence:
    """Return the evidence of a trajectory; that of the last one is kept."""
    if not _LAST or _LAST[0].run.tree is not run.tree:
        _LAST[:] = [Evidence(run)]
    return _LAST[0]


_LAST: list[Evidence] = []


def knowledge(lexical: Rows, kind: str) -> float:
    """Return the mean over rows of max_l β: how well the best single position would do."""
    best = np.nanmax(lexical, axis=1)
    return float((expit(best) if kind == "labelled" else np.exp(best)).mean())


def concentration(alpha: Rows, cells: Cells) -> float:
    """Return the mean of 1 - H(α)/log L over rows of two positions or more: 0 when uniform."""
    weights = np.nan_to_num(alpha)[:, None, None]
    return 1 - float(relative_entropy(weights, cells.mask[:, None])[0])


def risen(curve: xr.DataArray) -> xr.DataArray:
    """Return a curve as shares of the way from its start to its maximum; 0 where it stays."""
    way = curve.max("step", skipna=False) - initial(curve)
    return (curve - initial(curve)) / way.where(way > STILL, np.inf)


def half_way(curve: xr.DataArray) -> xr.DataArray:
    """Return the step where a curve first is half way from its start to its maximum.

    A curve that does not rise is half way at the last step at the earliest, so that step is
    returned; NaN for a curve with gaps.

    >>> curve = xr.DataArray([0.2, 0.2, 0.6], {"step": [0.0, 10.0, 50.0]}, "step")
    >>> float(half_way(curve)), float(half_way(-curve))
    (30.0, 50.0)
    """
    found = crossing(risen(curve), 0.5).fillna(float(curve["step"][-1]))
    return found.where(curve.notnull().all("step"))


def _measured_by(performance: Performance, split: Split) -> tuple[str, float]:
    """Return the reading of a performance, and its factor to percent."""
    return ("bleu", 1.0) if performance == "bleu" else (f"accuracy_{split}", 100.0)
