"""The figures of ``lu2021.synergy``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes import mean_interval
from attnscope.report.figure import Band, Figure, Line, Mark, Panel, Rule
from attnscope.studies.lu2021._synergy_claims import NEGATIVE, turning_epochs
from attnscope.trajectory import select

if TYPE_CHECKING:
    from attnscope.studies.lu2021.synergy import Synergy

CASES = ("TC", "TC-KF", "TC-EF")


def figures(study: Synergy, tree: xr.DataTree) -> list[Figure]:
    """Return Fig 3, and Theorem 1 over the runs that Corollary 1 cannot describe."""
    return [synergy(study, tree), theorem1(study, tree)]


def synergy(study: Synergy, tree: xr.DataTree) -> Figure:
    """Draw Fig 3: five panels over the early epochs."""
    turn = Rule(float(np.mean(turning_epochs(tree))), "mean turn", vertical=True)
    zoom = 800
    panels = (
        ("score, positive start", "score", "", study.early, ()),
        ("embedding norm, positive start", "norm", "", study.early, ()),
        ("training loss", "loss", "", study.early, ()),
        ("score, negative start", "score", NEGATIVE, zoom, ()),
        ("growth of the norm, negative start", "growth", NEGATIVE, zoom, (turn,)),
    )
    labels = {
        "score": "score",
        "norm": "norm",
        "growth": "norm less its initial value",
        "loss": "cross-entropy (nats)",
    }
    return Figure(
        "fig3-synergy",
        "Score and embedding pull each other up, or first hold each other down",
        f"One topic word in Attn-TC and in its twins with frozen scores (KF) and frozen embeddings "
        f"(EF), mean over {study.seeds} seeds with 95 % bands, σ²/d = {study.variance:g}. Above: "
        "with attention both grow faster. Below: from a negative projection both fall first; the "
        "rule marks the mean epoch from which TC's norm grows faster than KF's (Lu 2021, Fig 3).",
        tuple(
            Panel(title, "epoch", labels[name], (*_curves(tree, name, suffix, until), *more))
            for title, name, suffix, until, more in panels
        ),
    )


def _curves(tree: xr.DataTree, name: str, suffix: str, until: int) -> list[Mark]:
    marks: list[Mark] = []
    for i, case in enumerate(CASES):
        data = select(tree, "norm" if name == "growth" else name, case + suffix)
        if "word" in data.dims:
            data = data.isel(word=0)
        early = data["epoch"].to_numpy() <= until
        epochs = data["epoch"].to_numpy()[early]
        values = data.to_numpy()[:, early]
        mean, low, high = mean_interval(values - values[:, :1] if name == "growth" else values)
        marks += [Band(epochs, low, high, color=i), Line(epochs, mean, f"Attn-{case}", i)]
    return marks


def theorem1(study: Synergy, tree: xr.DataTree) -> Figure:
    """Draw distance against score, with Theorem 1 and with Corollary 1."""
    panels = []
    for case in ("TC", "TC" + NEGATIVE):
        sides = select(tree, "identity", case).isel(word=0).to_numpy()
        predicted = select(tree, "distance", case, "theory").isel(word=0).to_numpy()
        times = select(tree, "identity", case)["time_probe"].to_numpy()
        curve = select(tree, "score", case).isel(word=0)
        clock = curve["time"].to_numpy()
        marks: list[Mark] = []
        for seed in range(sides.shape[0]):
            score = np.interp(times, clock, curve.to_numpy()[seed])
            distance = np.sqrt(2 * sides[seed, :, 1])
            marks.append(Line(score, distance, f"seed {seed}", seed, thin=True))
            marks.append(Line(score, predicted[seed], "Theorem 1, per seed", theory=True))
        title = "positive start" if case == "TC" else "negative start"
        panels.append(
            Panel(
                f"Attn-TC, {title}",
                "score of a topic word",
                "distance ‖v - ⟨v̄(χ∖t)⟩‖",
                tuple(marks),
            )
        )
    return Figure(
        "theorem1-large-start",
        "Theorem 1 from a start that matters",
        f"Distance of a topic word from the mean of the words around it against its score, σ²/d = "
        f"{study.variance:g}, {study.seeds} seeds. Corollary 1 starts all curves at the origin; "
        "Theorem 1 with each run's own initial values starts them where they are (Lu 2021, eq 9).",
        tuple(panels),
        columns=2,
    )
