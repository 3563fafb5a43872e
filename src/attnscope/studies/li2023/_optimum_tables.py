"""The tables of ``li2023.optimum``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.report.page import Table
from attnscope.studies.li2023._optimum_claims import final
from attnscope.studies.li2023._optimum_theory import best_gamma_at
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum import Optimum


def tables(study: Optimum, tree: xr.DataTree) -> list[Table]:
    """Return minimisers of the landscapes, and where training ends."""
    return [_minima(study, tree), _diagonal(study, tree), _trained(study, tree)]


def _minima(study: Optimum, tree: xr.DataTree) -> Table:
    rows = []
    for tau, found, far in zip(
        study.landscape_taus,
        tree["theory/landscape_gamma"].to_numpy(),
        tree["theory/landscape_far"].to_numpy(),
        strict=True,
    ):
        bounds = li2023.gamma_bounds(study.landscape_setting(tau))
        paper, attended = map(float, found)
        loose = (paper / bounds.lower, bounds.upper / paper)
        rows.append((tau, bounds.lower, paper, attended, bounds.upper, *loose, float(far)))
    columns = (
        "τ",
        "λ₁(τ - 1)",
        "best γ",
        "best γ, [MASK] attended",
        "λ₂T",
        "best γ over lower bound",
        "upper bound over best γ",
        "best γ with 100 T topics",
    )
    size = f"T = {study.landscape_topics}, v = {study.landscape_words}"
    return Table("minima", f"Theorem 3 against the exact loss, {size}", columns, tuple(rows))


def _diagonal(study: Optimum, tree: xr.DataTree) -> Table:
    rows = []
    pairs = tree["theory/landscape_diagonal"].to_numpy()
    for tau, (alpha, beta) in zip(study.landscape_taus, pairs, strict=True):
        bounds = li2023.diagonal_bounds(study.landscape_setting(tau))
        most = bounds.alpha_per_beta * float(beta)
        rows.append((tau, bounds.beta.lower, float(beta), bounds.beta.upper, float(alpha), most))
    size = f"T = {study.landscape_topics}, v = {study.landscape_words}"
    columns = ("τ", "λ₃τ", "best β", "λ₄T", "best α", "λ₅β")
    title = f"Theorem 5 against the exact loss, diagonal W^V, {size}"
    return Table("minima-diagonal", title, columns, tuple(rows))


def _trained(study: Optimum, tree: xr.DataTree) -> Table:
    rows = []
    for case in study.cases():
        setting = study.setting(study.tau_of(case))
        measured = [final(tree, case, name).mean() for name in ("alpha", "beta", "gamma")]
        mask, loss = final(tree, case, "mask_ratio"), select(tree, "loss", case).isel(step=-1)
        spread = select(tree, "spread", case).isel(step=-1)
        blocks = case in study.topic_cases().values()
        best = [
            float(select(tree, name, case, "theory")[0]) if blocks else None
            for name in ("gamma_best", "mask_best", "gamma_attended", "gamma_paper")
        ]
        if case == study.diagonal_case:
            values = li2023.diagonal_value_blocks(setting)
            gamma = li2023.mean_ratio(setting, *li2023.best_attention(setting, values, "attended"))
            best[2] = float(gamma)
        read = [float(np.mean(part)) for part in (*measured, mask, spread)]
        here = best_gamma_at(setting, read[3]) if blocks else None
        rows.append((case, *read, here, *best, float(loss.mean())))
    columns = (
        "case",
        "α",
        "β",
        "γ",
        "μ, to [MASK]",
        "spread of γ over words",
        "best γ at this μ",
        "best γ, μ free",
        "best μ",
        "best γ at μ = 1",
        "best γ as printed",
        "loss",
    )
    size = f"T = {study.topics}, v = {study.words}"
    title = f"End of training, mean over {study.seeds} seeds, {size}"
    return Table("trained", title, columns, tuple(rows))
