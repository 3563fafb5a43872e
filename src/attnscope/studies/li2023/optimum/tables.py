"""The tables of ``li2023.optimum``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnscope.report import Table
from attnscope.theory import li2023
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.li2023.optimum.study import Optimum


def tables(study: Optimum, run: Readings) -> list[Table]:
    """Tabulate minimisers with their bounds, and the end of training."""
    size = f"T = {study.landscape_topics}, v = {study.landscape_words}"
    known, minima, basins = run.theory, [], []
    gammas, pairs, far = (
        known.get(f"landscape_{name}").to_numpy() for name in ("gamma", "diagonal", "far")
    )
    for i, tau in enumerate(study.landscape_taus):
        bounds = li2023.gamma_bounds(study.landscape_setting(tau))
        paper, attended = map(float, gammas[i])
        loose = (paper / bounds.lower, bounds.upper / paper)
        minima.append((tau, bounds.lower, paper, attended, bounds.upper, *loose, float(far[i])))
        own, (alpha, beta) = li2023.diagonal_bounds(study.landscape_setting(tau)), pairs[i]
        most = own.alpha_per_beta * float(beta)
        basins.append((tau, own.beta.lower, float(beta), own.beta.upper, float(alpha), most))
    return [
        Table(
            "minima",
            f"Theorem 3 against the exact loss, {size}",
            (
                "τ",
                "λ₁(τ - 1)",
                "best γ",
                "best γ, [MASK] attended",
                "λ₂T",
                "best γ over lower bound",
                "upper bound over best γ",
                "best γ with 100 T topics",
            ),
            tuple(minima),
        ),
        Table(
            "minima-diagonal",
            f"Theorem 5 against the exact loss, diagonal W^V, {size}",
            ("τ", "λ₃τ", "best β", "λ₄T", "best α", "λ₅β"),
            tuple(basins),
        ),
        trained(study, run),
    ]


def trained(study: Optimum, run: Readings) -> Table:
    """Tabulate where training ends."""
    rows = []
    for case in study.cases:
        setting, own = study.setting(case), run.of(case)
        ratios = final(own.ratios).astype(float).mean("seed")
        best: list[float | None] = [None] * 5
        if case in study.topic_cases:
            here = li2023.best_gamma_at(setting, float(ratios.sel(ratio="mask")))
            names = ("gamma_best", "mask_best", "gamma_attended", "gamma_paper")
            best = [here, *(float(own.theory.get(name)[0]) for name in names)]
        elif case == study.diagonal_case:
            values = li2023.diagonal_value_blocks(setting)
            pair = li2023.best_attention(setting, values, "attended")
            best[3] = float(li2023.mean_ratio(setting, *pair))
        spread, loss = (float(final(each).mean()) for each in (own.spread, own.loss))
        rows.append((case, *ratios.to_numpy().tolist(), spread, *best, loss))
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
