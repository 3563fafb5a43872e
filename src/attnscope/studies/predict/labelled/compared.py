"""What predictions came to: agreement with attention that was learned later, and its yardsticks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from attnscope.probes.evidence.bags import LabelledBags, labelled_bags
from attnscope.probes.evidence.held_out import word_accuracy
from attnscope.probes.evidence.predictors import (
    CHOSEN,
    FAMILY,
    LEAK,
    Rarity,
    held_by_states,
)
from attnscope.probes.lexicon.agreement import mean_agreement, random_baseline
from attnscope.studies.predict.labelled.models import LU, SNELL
from attnscope.studies.predict.labelled.sets import padded, sequences
from attnscope.tasks.word_sequences import WordSequences
from attnscope.trajectory import Readings, final

if TYPE_CHECKING:
    from attnscope.studies.predict.labelled.study import Labelled

SHUFFLES = 5
CHOSEN_NAME, SEED, RARITY, CHANCE = "chosen", "another seed", "rarity", "chance"
SHUFFLED, BEST_SHUFFLE, ONE_MORE = "shuffled labels", "best of five shuffles", "one more shuffle"
OTHERS = tuple(each for each in FAMILY if each is not CHOSEN)
PREDICTORS = (
    *(CHOSEN_NAME, SEED, RARITY, SHUFFLED, CHANCE, BEST_SHUFFLE, ONE_MORE),
    *(each.name for each in OTHERS),
)
"""What is held against learned attention; those of the family come last, word by word."""
LEAKS = {SNELL: LEAK, LU: 0.0}
"""How much of its neighbours a position holds: states of the LSTM do, words of a bag do not."""
BY_STATES = (CHOSEN_NAME, SHUFFLED, ONE_MORE)
"""What is told as the model reads it."""
MEASURES = ("top 5 %", "first")
TOPS = (0.05, 1e-6)
"""Shares of positions that count as the top: at the second it is a single one."""
Values = NDArray[np.float64]


@lru_cache(maxsize=64)
def bags_of(data: WordSequences) -> LabelledBags:
    """Return the training texts as bags."""
    return labelled_bags(data.train.ids, data.train.labels, len(data.words), 2)


def predictions(data: WordSequences) -> dict[str, list[Values]]:
    """Return the evidence of each word by each predictor; several if it is random."""
    bags, dice = bags_of(data), np.random.default_rng(0)
    found = {RARITY: [Rarity().evidence(bags)], CHOSEN_NAME: [CHOSEN.evidence(bags)]}
    shuffles = [
        CHOSEN.evidence(bags.relabelled(dice.permutation(bags.labels))) for _ in range(SHUFFLES + 1)
    ]
    found |= {SHUFFLED: shuffles[:-1], ONE_MORE: shuffles[-1:]}
    return found | {each.name: [each.evidence(bags)] for each in OTHERS}


def attracted(evidence: Values, ids: NDArray[np.int64], leak: float) -> Values:
    """Return how much each position of texts ``(text, position)`` attracts; -1 is no word."""
    there = (ids >= 0)[..., None]
    own = np.where(there, evidence[np.maximum(ids, 0)], 0.0)
    found: Values = held_by_states(own, leak).max(axis=-1)
    return found


def agreed(u: Values, v: Values, mask: NDArray[np.bool_]) -> list[float]:
    """Return A(u, v) in percent by each measure; ties are broken at random."""
    filled = np.where(mask, u, 0.0), np.where(mask, v, 0.0)
    return [100 * mean_agreement(*filled, mask, top).value for top in TOPS]


def compared(study: Labelled, run: Readings) -> xr.Dataset:
    """Return agreements along case, seed, predictor and measure; and what was predicted."""
    shape = (len(study.cases), study.seeds, len(PREDICTORS), len(MEASURES))
    table = np.full(shape, np.nan)
    drawn = np.full((len(study.sets), study.evaluated, study.width), np.nan)
    words = np.full((len(study.sets), 3), np.nan)
    for at, name in enumerate(study.sets):
        data, evidence = sequences(study, name), _kept(study, name)
        there = len(data.dev)
        ids = padded(data.dev.ids, study.evaluated, study.width)[:there]
        mask = ids >= 0
        drawn[at, :there] = np.where(mask, attracted(evidence[CHOSEN_NAME][0], ids, 0.0), np.nan)
        known = word_accuracy(bags_of(data))
        words[at] = known.bag.share, known.one_word.share, known.majority.share
        for number, model in enumerate(study.models):
            case = number * len(study.sets) + at
            learned = final(run.of(study.cases[case]).alpha).to_numpy().astype(float)[:, :there]
            if np.isnan(learned[:, mask]).any():
                continue  # Runs that are not done yet.
            said = {
                key: [attracted(e, ids, LEAKS[model] if key in BY_STATES else 0.0) for e in several]
                for key, several in evidence.items()
            }
            table[case] = _agreements(learned, said, mask)
    return xr.Dataset(
        {
            "agreement": (("case", "seed", "predictor", "measure"), table, {"unit": "%"}),
            "attraction": (("set", "text", "position"), drawn),
            "word_accuracy": (("set", "known_by"), words, {"meaning": "bag, one word, majority"}),
        }
    )


def _agreements(learned: Values, said: dict[str, list[Values]], mask: NDArray[np.bool_]) -> Values:
    lengths = mask.sum(axis=1)
    chance = [100 * random_baseline(lengths, top) for top in TOPS]
    rows = np.full((len(learned), len(PREDICTORS), len(MEASURES)), np.nan)
    for seed, alpha in enumerate(learned):
        others = [agreed(alpha, other, mask) for i, other in enumerate(learned) if i != seed]
        values = {CHANCE: chance, SEED: np.mean(others, axis=0) if others else [np.nan] * 2}
        for key, several in said.items():
            each = [agreed(alpha, v, mask) for v in several]
            values[key] = np.mean(each, axis=0)
            if key == SHUFFLED:
                values[BEST_SHUFFLE] = np.max(each, axis=0)
        rows[seed] = [values[key] for key in PREDICTORS]
    return rows


@lru_cache(maxsize=64)
def _kept(study: Labelled, name: str) -> dict[str, list[Values]]:
    return predictions(sequences(study, name))
