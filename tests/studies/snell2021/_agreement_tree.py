"""A made-up trajectory in the shape of ``snell2021.agreement``, with the paper's story built in.

Every word has a strength, and every cell a worth: how much the word there says about what is right.
Knowledge grows over steps towards the worth, attention follows later; what each run adds is noise.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.studies.snell2021.agreement.evidence import Evidence
from attnscope.studies.snell2021.agreement.predictions import predictions
from attnscope.trajectory import Readings

STEPS = np.array([0, 10, 50, 100, 150, 200, 250, 500, 750, 1000])
RUNS = (
    ("normal", 20),
    ("normal", 13),
    ("normal", 14),
    ("normal", 15),
    ("uniform", 12),
    ("frozen", 11),
    ("proxy", 10),
)
KNOWN, ATTENDED = 80.0, 300.0
"""Steps in which knowledge and attention have gone about two thirds of their way."""
SPECIALS = 3


@dataclass(frozen=True, eq=False)
class Made:
    """A tree, and the training pairs that its predictions come from."""

    tree: xr.DataTree
    source: list[list[int]]
    target: list[list[int]]


def make(kind: str, sentences: int = 60, salient: int = 40, seed: int = 0) -> Made:
    """Return a trajectory on made-up data.

    Args:
        kind: ``"labelled"`` or ``"parallel"``.
        sentences: of either split.
        salient: sentences with Δ.
        seed: of the data and the noise.
    """
    rng = np.random.default_rng(seed)
    types = 40
    strength = np.concatenate([np.zeros(SPECIALS), rng.normal(size=types) ** 3])
    pairs = [_pair(kind, rng, strength, types) for _ in range(2 * sentences)]
    splits = {"dev": pairs[:sentences], "train": pairs[sentences:]}
    observables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    data: dict[str, tuple[str, np.ndarray]] = {}
    for split, part in splits.items():
        rows = [(m, x, y) for m, (x, ys) in enumerate(part) for y in ys]
        worth = np.concatenate([_worth(kind, x, y, strength) for _, x, y in rows])
        length = np.array([len(x) for _, x, _ in rows])
        alpha, lexical = _courses(kind, rng, worth, length)
        own = sum(len(x) for m, x, _ in rows if m < salient)
        delta = np.full((len(RUNS), len(STEPS), own), np.nan, dtype=np.float32)
        # Saliency is read off run A alone.
        delta[0] = lexical[0, :, :own] + 0.3 * rng.normal(size=(len(STEPS), own))
        observables[f"alpha_{split}"] = (("run", "step", f"cell_{split}"), alpha)
        observables[f"lexical_{split}"] = (("run", "step", f"cell_{split}"), lexical)
        observables[f"delta_{split}"] = (("run", "step", f"salient_{split}"), delta)
        accuracy = _performance(50.0 if kind == "labelled" else 0.0, 90.0) / 100
        observables[f"accuracy_{split}"] = (("run", "step"), accuracy)
        observables[f"loss_{split}"] = (("run", "step"), 1 - accuracy)
        data[f"length_{split}"] = (f"row_{split}", length)
        data[f"sentence_{split}"] = (f"row_{split}", np.array([m for m, _, _ in rows]))
        data[f"target_{split}"] = (f"row_{split}", np.array([y for _, _, y in rows]))
        data[f"source_{split}"] = (f"cell_{split}", np.concatenate([x for _, x, _ in rows]))
    bleu = _performance(0.0, 40.0)
    observables["bleu"] = (
        ("run", "step"),
        bleu if kind == "parallel" else np.full_like(bleu, np.nan),
    )
    words = ["<pad>", "<bos>", "<eos>"] + [f"word{i}" for i in range(types)]
    data["word"] = ("id", np.array(words))
    runs = {
        "case": ("run", [case for case, _ in RUNS]),
        "seed": ("run", [seed for _, seed in RUNS]),
        "time": ("step", STEPS.astype(float)),
    }
    facts = {"training sentences": sentences, "unknown words (%)": 1.5, "GloVe": "none was found"}
    attrs: dict[str, object] = {"kind": kind, "data": "made up", "facts": json.dumps(facts)}
    if kind == "labelled":
        attrs["classes"] = ["bad", "good"]
    truth = xr.Dataset(data, attrs=attrs)
    source = [list(x) for x, _ in splits["train"]]
    target = [list(ys) for _, ys in splits["train"]]
    groups = {"observables": xr.Dataset(observables, coords=runs), "data": truth}
    alpha = Evidence(Readings(xr.DataTree.from_dict(groups))).alpha
    groups["theory"] = predictions(truth, source, target, alpha)
    return Made(xr.DataTree.from_dict(groups), source, target)


def _pair(
    kind: str, rng: np.random.Generator, strength: np.ndarray, types: int
) -> tuple[np.ndarray, list[int]]:
    words = rng.integers(SPECIALS, SPECIALS + types, size=rng.integers(4, 30))
    if kind == "labelled":
        return np.concatenate([[1], words, [2]]), [int(strength[words].sum() > 0)]
    # A translation says the words again, in the order of their numbers.
    words = words[:8]
    return np.append(words, 2), [*(int(word) for word in np.sort(words)), 2]


def _worth(kind: str, x: np.ndarray, y: int, strength: np.ndarray) -> np.ndarray:
    if kind == "labelled":
        return (2 * y - 1) * strength[x]
    return np.where(x == y, 3.0, -3.0) + 0.2 * strength[x]


def _courses(
    kind: str, rng: np.random.Generator, worth: np.ndarray, length: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return attention and the lexical probe, ``(run, step, cell)``."""
    row = np.repeat(np.arange(len(length)), length)
    scale = worth.std()

    def noise(size: float) -> np.ndarray:
        return size * scale * rng.normal(size=worth.shape)

    alphas, probes = [], []
    for case, _ in RUNS:
        learns = case != "frozen"
        knowledge = (1 - np.exp(-STEPS / KNOWN))[:, None] * learns
        moved = (1 - np.exp(-STEPS / ATTENDED))[:, None]
        probe = noise(0.05) + knowledge * (worth + noise(0.4))
        logits = noise(0.05) + moved * (2 * worth * learns + noise(0.4))
        if case == "uniform":
            logits = np.zeros_like(logits)
        weights = np.exp(logits)
        total = np.stack([np.bincount(row, weights=one) for one in weights])
        alphas.append(np.full_like(logits, np.nan) if case == "proxy" else weights / total[:, row])
        probes.append(probe if kind == "labelled" else -np.logaddexp(0, -(probe - 1)))
    return np.stack(alphas).astype(np.float32), np.stack(probes).astype(np.float32)


def _performance(start: float, end: float) -> np.ndarray:
    """Return performance in percent, ``(run, step)``; the last checkpoint is not the best one."""
    course = (1 - np.exp(-STEPS / ATTENDED)) * np.where(STEPS[-1] == STEPS, 0.85, 1.0)
    full = np.array(
        [{"normal": 1.0, "uniform": 0.8, "frozen": 0.2, "proxy": 0.7}[c] for c, _ in RUNS]
    )
    return np.asarray(start + (end - start) * full[:, None] * course)
