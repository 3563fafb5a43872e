"""What the studies of one head of products share: runs, greedy stages, measured times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from attnscope.bounds import Several
from attnscope.engines import Descent, Flow, Linear, Observable, Record
from attnscope.errors import AttnscopeError
from attnscope.experiment import Problem, Study
from attnscope.models.factored_head import MATRICES, FactoredHead, attend, attention
from attnscope.tasks.teacher_head import TeacherHead
from attnscope.theory import boix2023
from attnscope.trajectory import Readings, crossing

CITATION = (
    "Boix-Adsera, Littwin, Abbe, Bengio, Susskind. Transformers learn through gradual rank "
    "increase. NeurIPS 2023."
)
LOST = 20.0
"""Stages that the wrong algorithm puts even later than this are not looked for."""


@dataclass(frozen=True)
class HeadStudy(Study):
    """A head learns the answers of another one by gradient flow, in units of time of log(1/α)."""

    training: Flow = Flow(until=7.0, rtol=1e-5, atol=1e-3)
    """Time is t/log(1/α); ``atol`` is that of a factor in units of α."""
    points: Several = 1401
    """Record points, evenly spaced."""
    task: TeacherHead = TeacherHead()

    citation = CITATION
    labels: ClassVar = {"matrix": MATRICES}

    def sizes(self) -> Mapping[str, float]:
        """Return α of every case."""
        raise NotImplementedError

    def check(self) -> None:
        """Check that every start is small, and that there are no two of one size."""
        if self.training.lr is not None:
            raise AttnscopeError(
                f"lr = {self.training.lr:g}: expected a flow without a learning rate, until a "
                "time in units of log(1/α)."
            )
        for size in self.sizes().values():
            boix2023.check_size(size)

    @property
    def cases(self) -> tuple[str, ...]:
        """The starts."""
        return tuple(self.sizes())

    def is_diagonal(self, case: str) -> bool:
        """Return whether the head of a case is diagonal."""
        return not case.startswith("full")

    def engine(self, case: str, seed: int) -> Flow | Descent:
        """Return the flow, which has to see factors as small as the start."""
        return replace(self.training, atol=self.training.atol * self.sizes()[case])

    def build(self, case: str, seed: int) -> Problem:
        """Make the run of one start; starts of one seed differ in their size alone.

        The loss is multiplied by log(1/α), so that all runs share the rescaled time.
        """
        size, diagonal = self.sizes()[case], self.is_diagonal(case)
        source = torch.Generator().manual_seed(seed)
        model = FactoredHead(self.task.width, size, diagonal, source)
        (tokens, targets), unit = answered(self.task), boix2023.rescaled(size)
        before = model.conserved().detach().clone()

        def loss(module: nn.Module) -> Tensor:
            return half_square(head(module)(tokens), targets)

        curves = (
            Observable("loss", loss, (), "", "half the squared error, mean over tokens"),
            Observable(
                "product",
                lambda m: head(m).diagonals(),
                ("matrix", "entry"),
                meaning="diagonals of W_K W_Qᵀ and W_V W_Oᵀ",
            ),
            Observable(
                "singular_value",
                lambda m: head(m).singular_values(),
                ("matrix", "rank"),
                meaning="singular values of W_K W_Qᵀ and W_V W_Oᵀ, largest first",
            ),
            Observable(
                "drift",
                lambda m: (head(m).conserved() - before).abs().max(),
                meaning="largest change of u² - v², which the flow conserves",
            ),
            Observable(
                "attention",
                lambda m: attention(tokens[:1], head(m).products()[0])[0],
                ("query", "key"),
                meaning="attention on the first sample",
            ),
        )
        return Problem(model, lambda m: unit * loss(m), [Record(curves, Linear(self.points))])

    def gradient(self, products: np.ndarray) -> np.ndarray:
        """Return -∂L/∂w of the diagonal head; w is both diagonals, one after the other."""
        return -self._slope(torch.from_numpy(products.reshape(2, -1))).numpy().ravel()

    def start_gradient(self) -> np.ndarray:
        """Return -∂L/∂(W_V W_Oᵀ) of full matrices at zero."""
        return -self._slope(torch.zeros(2, self.task.width, self.task.width).double()).numpy()[1]

    def _slope(self, products: Tensor) -> Tensor:
        tokens, targets = answered(self.task)
        point = products.clone().requires_grad_()
        loss = half_square(attend(tokens, *point), targets)
        return torch.autograd.grad(loss, point)[0]

    def loss_at(self, products: np.ndarray) -> float:
        """Return the loss of the diagonal head."""
        tokens, targets = answered(self.task)
        scores, values = torch.from_numpy(products.reshape(2, -1))
        return float(half_square(attend(tokens, scores, values), targets))

    def stages(self, *, remember: bool = True, lr: float = 0.0) -> boix2023.Stages:
        """Return the greedy stages within the run; without memory, also far beyond."""
        until = self.end if remember else LOST * self.end
        size = 2 * self.task.width
        return boix2023.greedy_stages(self.gradient, size, until, remember=remember, lr=lr)

    def theory(self, run: Readings) -> xr.Dataset:
        """Return the stages of the greedy algorithm, and those of one without a memory."""
        found = self.stages()
        known = found.stages or (
            boix2023.Stage(np.nan, 0, np.zeros(2 * self.task.width), 0, np.nan),
        )
        forgetful = np.full(len(known), np.nan)
        wrong = self.stages(remember=False).times[: len(known)]
        forgetful[: len(wrong)] = wrong
        place = np.array([divmod(stage.entry, self.task.width) for stage in known])
        values: dict[str, tuple[np.ndarray, str]] = {
            "stage_time": (np.array([s.time for s in known]), "T, in units of log(1/α)"),
            "forgetful_time": (forgetful, "T if exponents were set back to 1 at each stage"),
            "stage_matrix": (place[:, 0], "matrix of the product that leaves zero: 0 KQ, 1 VO"),
            "stage_entry": (place[:, 1], "its place on the diagonal"),
            "stage_loss": (np.array([self.loss_at(s.products) for s in known]), "on the plateau"),
            "stage_gap": (
                np.array([s.gap for s in known]),
                "how much later the runner-up would be",
            ),
            "runner_up": (np.array([s.runner_up for s in known]), "its number, KQ first"),
            "start_gradient": (np.abs(self.gradient(np.zeros(2 * self.task.width))), "|g| at zero"),
        }
        dims = {
            name: ("product_number" if name == "start_gradient" else "stage") for name in values
        }
        data = xr.Dataset(
            {name: (dims[name], array, {"meaning": why}) for name, (array, why) in values.items()},
            attrs={"ended": found.ended},
        )
        data["plateau"] = (("stage", "product_number"), np.stack([s.products for s in known]))
        data["full_first_time"] = ((), boix2023.first_time(self.start_gradient()))
        return data

    def entry_name(self, number: int) -> str:
        """Return what a product is called: ``VO1``."""
        matrix, entry = divmod(int(number), self.task.width)
        return f"{MATRICES[matrix]}{entry + 1}"


@lru_cache(maxsize=4)
def answered(task: TeacherHead) -> tuple[Tensor, Tensor]:
    """Return the tokens and what the teacher answers."""
    tokens, teacher = task.sample()
    return tokens, attend(tokens, *teacher)


def half_square(found: Tensor, wanted: Tensor) -> Tensor:
    """Return half the squared error of a token's answer, mean over tokens and samples."""
    return 0.5 * ((found - wanted) ** 2).sum(dim=-1).mean()


def head(module: nn.Module) -> FactoredHead:
    """Return the module as what it is."""
    assert isinstance(module, FactoredHead)
    return module


def timed(reading: xr.DataArray) -> xr.DataArray:
    """Return a reading whose steps are its times, so that crossings are times."""
    return reading.assign_coords(step=reading["time"].to_numpy())


def numbers(run: Readings) -> np.ndarray:
    """Return the products of the stages by number, KQ first."""
    width = run.product.sizes["entry"]
    return np.asarray(run.theory.stage_matrix * width + run.theory.stage_entry).astype(int)


def stage_times(run: Readings, case: str) -> np.ndarray:
    """Return when each product passed half its value on the plateau, shape ``(seed, stage)``."""
    product = timed(run.of(case).product).stack(number=("matrix", "entry"))
    plateau, found = run.theory.plateau.to_numpy(), []
    for stage, number in enumerate(numbers(run)):
        level = plateau[stage, number] / 2
        sign = np.sign(level) or 1.0
        found.append(crossing(sign * product.isel(number=number), abs(level)).to_numpy())
    return np.stack(found, axis=-1)
