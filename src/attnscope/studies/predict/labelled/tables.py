"""Predicted against learned, in tables: sets, predictors, words, and when attention comes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.probes.attention_shape import relative_entropy
from attnscope.probes.intervals import mean_interval
from attnscope.report import Cell, Table
from attnscope.studies.predict._timing import when_table
from attnscope.studies.predict.labelled.compared import (
    CHANCE,
    CHOSEN_NAME,
    MEASURES,
    PREDICTORS,
    RARITY,
    SEED,
    SHUFFLED,
)
from attnscope.studies.predict.labelled.sets import role
from attnscope.trajectory import Readings, crossing, final, initial

if TYPE_CHECKING:
    from attnscope.studies.predict.labelled.study import Labelled

WORDS = 15
COLUMNS = (CHOSEN_NAME, SEED, RARITY, SHUFFLED, CHANCE)


def tables_of(study: Labelled, run: Readings) -> list[Table]:
    """Return all tables."""
    return [
        summary_table(study, run),
        family_table(study, run),
        words_table(study, run),
        order_table(study, run),
        when_table(study.trained, run),
    ]


def summary_table(study: Labelled, run: Readings) -> Table:
    """Agreement of the prediction and of what it is held against, case by case."""
    rows: list[tuple[Cell, ...]] = []
    for case, name in _cases(study):
        agreed = run.of(case).theory.agreement
        top = agreed.sel(measure=MEASURES[0])
        mean, low, high = mean_interval(top.sel(predictor=CHOSEN_NAME).to_numpy())
        first = agreed.sel(measure=MEASURES[1]).mean("seed")
        accuracy = float(final(run.of(case).accuracy).mean())
        rows.append(
            (
                case,
                role(name),
                round(float(mean), 1),
                f"{low:.1f} to {high:.1f}" if np.isfinite(low) else "",
                *(round(float(top.sel(predictor=p).mean()), 1) for p in COLUMNS[1:]),
                round(float(first.sel(predictor=CHOSEN_NAME)), 1),
                round(float(first.sel(predictor=SEED)), 1),
                round(100 * accuracy, 1),
            )
        )
    columns = (
        "set and model",
        "used to",
        "predicted (%)",
        "95 % interval",
        "another seed (%)",
        "rarity (%)",
        "shuffled labels (%)",
        "chance (%)",
        "first, predicted (%)",
        "first, another seed (%)",
        "accuracy (%)",
    )
    title = "Texts whose most attended word is in the top 5 % of the prediction"
    return Table("predicted", title, columns, tuple(rows))


def family_table(study: Labelled, run: Readings) -> Table:
    """Every predictor of the family, over the sets it was chosen on and over the others."""
    agreed = run.theory.agreement.mean("seed")
    columns, parts = [], []
    for model in study.models:
        for what in ("chosen on", "judged on"):
            own = [c for c, name in _cases(study) if role(name) == what and c.endswith(model)]
            if own:
                columns.append(f"{model}, {what} {len(own)} sets (%)")
                parts.append(agreed.sel(case=own).mean("case"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *(round(float(part.sel(predictor=name, measure=MEASURES[0])), 1) for part in parts))
        for name in PREDICTORS
    )
    title = "The family of predictors: mean agreement over sets"
    return Table("family", title, ("predictor", *columns), rows)


def words_table(study: Labelled, run: Readings) -> Table:
    """The words that were to be picked most often, beside those that were."""
    rows: list[tuple[str, int, str, str, str]] = []
    for case, name in _cases(study):
        at = study.sets.index(name)
        ids = run.data.ids.isel(set=at).to_numpy()
        words = run.data.words.isel(set=at).to_numpy()
        said = _picks(run.theory.attraction.isel(set=at).to_numpy(), ids, words)
        seen = [_picks(a, ids, words) for a in final(run.of(case).alpha).to_numpy()]
        learned = sum(seen, Counter[str]())
        texts = int((ids[:, 0] >= 0).sum())
        for rank, ((p, n), (q, m)) in enumerate(
            zip(said.most_common(WORDS), learned.most_common(WORDS), strict=False)
        ):
            rows.append(
                (
                    case,
                    rank + 1,
                    f"{p} ({n / texts:.1%})",
                    f"{q} ({m / len(seen) / texts:.1%})",
                    "yes" if q in dict(said.most_common(2 * WORDS)) else "",
                )
            )
    return Table(
        "words",
        "Words picked most often in held-out texts (share of texts), predicted and learned",
        ("set and model", "rank", "predicted", "learned, all seeds", f"in first {2 * WORDS}"),
        tuple(rows),
        folded=len(study.cases) > 2,
    )


def order_table(study: Labelled, run: Readings) -> Table:
    """Which sets are predictable, with what the data said of them, and when attention came."""
    rows = []
    for case, name in _cases(study):
        at = study.sets.index(name)
        bag, one, majority = run.theory.word_accuracy.isel(set=at).to_numpy()
        top = run.of(case).theory.agreement.sel(measure=MEASURES[0]).mean("seed")
        over = float(top.sel(predictor=CHOSEN_NAME) - top.sel(predictor=CHANCE))
        rows.append(
            (
                case,
                round(over, 1),
                round(100 * float(one), 1),
                round(100 * float(bag), 1),
                round(100 * float(majority), 1),
                int(run.data.train.isel(set=at)),
                round(float(half_way(concentration(run.of(case).alpha)).mean()), 0),
            )
        )
    columns = (
        "set and model",
        "predicted over chance (points)",
        "one word finds (%)",
        "all words find (%)",
        "majority (%)",
        "training texts",
        "attention half way (step)",
    )
    order = sorted(rows, key=lambda row: -float(row[1]))
    return Table("order", "Which sets are predictable", columns, tuple(order))


def concentration(alpha: xr.DataArray) -> xr.DataArray:
    """Return the mean of 1 - H(α)/log L over texts, for each seed and step."""
    values = np.asarray(alpha, dtype=float)
    mask = ~np.isnan(values[0, 0])
    rows = mask.sum(axis=1) > 0
    found = [
        [
            1
            - float(
                relative_entropy(np.nan_to_num(at[rows])[:, None, None], mask[rows][:, None])[0]
            )
            for at in run
        ]
        for run in values
    ]
    kept = {name: alpha[name] for name in ("seed", "step") if name in alpha.coords}
    return xr.DataArray(np.array(found), kept, ("seed", "step"))


def half_way(curve: xr.DataArray) -> xr.DataArray:
    """Return the step where a curve is first half way from its start to its maximum."""
    way = curve.max("step") - initial(curve)
    return crossing((curve - initial(curve)) / way.where(way > 0, np.inf), 0.5)


def _cases(study: Labelled) -> list[tuple[str, str]]:
    return [(case, study.sets[i % len(study.sets)]) for i, case in enumerate(study.cases)]


def _picks(values: np.ndarray, ids: np.ndarray, words: np.ndarray) -> Counter[str]:
    rows = np.flatnonzero(ids[:, 0] >= 0)
    best = np.where(ids[rows] >= 0, values[rows], -np.inf).argmax(axis=1)
    return Counter(str(words[ids[row, at]]) for row, at in zip(rows, best, strict=True))
