"""Predicted against learned, drawn: each set with its yardsticks, and agreement over training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnscope.probes.intervals import mean_interval
from attnscope.report import Dots, Figure, Panel
from attnscope.studies.predict.labelled.compared import CHANCE, CHOSEN_NAME, MEASURES, RARITY, SEED
from attnscope.trajectory import Readings

if TYPE_CHECKING:
    from attnscope.studies.predict.labelled.study import Labelled

DRAWN = (CHOSEN_NAME, SEED, RARITY, CHANCE)


def figures_of(study: Labelled, run: Readings) -> list[Figure]:
    """Draw each set: the prediction, a second seed, rarity and chance."""
    panels = []
    for number, model in enumerate(study.models):
        cases = study.cases[number * len(study.sets) : (number + 1) * len(study.sets)]
        agreed = run.theory.agreement.sel(measure=MEASURES[0], case=list(cases))
        chosen = agreed.sel(predictor=CHOSEN_NAME).mean("seed").to_numpy()
        order = np.argsort(-chosen, kind="stable")
        marks = []
        for shift, name in enumerate(DRAWN):
            values = agreed.sel(predictor=name).transpose("seed", "case").to_numpy()[:, order]
            mean, low, high = mean_interval(values)
            known = bool(np.isfinite(low).all())
            x = np.arange(len(order)) + 0.15 * (shift - 1.5)
            label = "prediction" if name == CHOSEN_NAME else name
            ends = (low, high) if known else (None, None)
            marks.append(Dots(x, mean, ends[0], ends[1], label, shift))
        names = [cases[i].rsplit(", ", 1)[0] for i in order]
        panels.append(
            Panel(
                model,
                "set",
                "agreement with learned attention (%)",
                tuple(marks),
                xticks=tuple((float(x), name) for x, name in enumerate(names)),
            )
        )
    return [
        Figure(
            "agreement",
            "What was predicted from the data, and what was learned",
            "Share of held-out texts whose most attended word is in the top 5 % of the prediction, "
            f"mean over {study.seeds} seeds with its 95 % interval; the same for the attention of "
            "another seed, for rarity alone, and by chance.",
            tuple(panels),
            columns=1,
        )
    ]
