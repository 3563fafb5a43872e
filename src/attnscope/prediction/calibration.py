"""How well predictions have held, over all sets at hand: numbers kept from a run of the study."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

from attnscope.report.page import Cell, Table

KEPT = "calibration.json"


@dataclass(frozen=True)
class Held:
    """What came of one set, in percent.

    Args:
        name: the set.
        role: ``"chosen on"`` or ``"judged on"``.
        start: what embeddings started from: ``"random"`` or ``"GloVe"``.
        model: ``"Snell 2021"`` or ``"Lu 2021"``.
        predicted: texts whose most attended word is in the top 5 % of the prediction.
        top1: texts where it is the first of the prediction.
        second_seed: the same as ``predicted`` for the attention of another seed.
        second_top1: the same as ``top1`` for it.
        chance: of a prediction at random.
        rarity: by idf alone.
        shuffled: by the same predictor with shuffled labels.
        accuracy: of the trained model.
        texts: texts that were looked at.
        seeds: trainings.
    """

    name: str
    role: str
    start: str
    model: str
    predicted: float
    top1: float
    second_seed: float
    second_top1: float
    chance: float
    rarity: float
    shuffled: float
    accuracy: float
    texts: int
    seeds: int


@lru_cache(maxsize=1)
def kept() -> tuple[Held, ...]:
    """Return what is kept in the package."""
    data = json.loads(files(__package__).joinpath(KEPT).read_text(encoding="utf-8"))
    return tuple(Held(**row) for row in data)


def judged(model: str = "Snell 2021", start: str = "random") -> list[Held]:
    """Return the sets that nothing was chosen on."""
    return [
        row for row in kept() if (row.role, row.model, row.start) == ("judged on", model, start)
    ]


def how_well() -> str:
    """Say in a sentence how far a prediction can be trusted."""
    rows = judged()
    if not rows:
        return "How well such predictions hold has not been measured."

    def mean(name: str) -> float:
        return float(np.mean([getattr(row, name) for row in rows]))

    worst = min(rows, key=lambda row: row.predicted - row.chance)
    return (
        f"How far to trust this: on {len(rows)} sets that the method was not chosen on, the word "
        f"attended to most was among the top 5 % predicted in {mean('predicted'):.0f} % of "
        f"held-out texts ({mean('top1'):.0f} % the very first); a second training says "
        f"{mean('second_seed'):.0f} %, rarity alone {mean('rarity'):.0f} %, shuffled labels "
        f"{mean('shuffled'):.0f} %, chance {mean('chance'):.0f} %. Weakest: {worst.name}, "
        f"{worst.predicted:.0f} %."
    )


def calibration_table() -> Table:
    """Return every set with what was predicted and what was learned, the surest first."""
    columns = (
        "set",
        "used to",
        "model",
        "embeddings from",
        "predicted (%)",
        "first (%)",
        "second seed (%)",
        "its first (%)",
        "rarity (%)",
        "shuffled (%)",
        "chance (%)",
        "accuracy (%)",
    )
    order: list[Held] = sorted(kept(), key=lambda r: (r.model, r.start, r.role, -r.predicted))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.name,
            row.role,
            row.model,
            row.start,
            *(
                round(value, 1)
                for value in (
                    row.predicted,
                    row.top1,
                    row.second_seed,
                    row.second_top1,
                    row.rarity,
                    row.shuffled,
                    row.chance,
                    row.accuracy,
                )
            ),
        )
        for row in order
    )
    return Table("calibration", "How well predictions have held", columns, rows)
