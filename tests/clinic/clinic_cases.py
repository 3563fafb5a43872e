"""The cases of the clinic: diseases and healthy trainings, and which half each belongs to.

One protocol makes them all: an architecture, an optimizer, a seed, and for a disease one flaw. Each
disease is there twice, in two architectures and under two seeds. Thresholds were fixed on the cases
of the half ``"fixing"`` alone; the half ``"judged"`` was replayed afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from clinic_models import Shape

Half = Literal["fixing", "judged"]
Rule = Literal["sgd", "adam", "adamw", "cosine"]


@dataclass(frozen=True)
class Case:
    """One training.

    Args:
        disease: what a colleague would call it; empty for a healthy one.
        architecture: of the model.
        rule: optimizer and schedule.
        seed: of weights and data.
        half: which part of the clinic it belongs to.
        shape: of the model.
        flaw: what is done to the training, by name; see :mod:`clinic_training`.
        onset: the step at which it begins.
        batch: rows of a training batch.
        noise: share of wrong labels.
        tuned: steps of training before the recording begins, as of a model that is fine-tuned.
        task: another task than the architecture's own.
        steps: of training.
        lr: factor on the rule's learning rate.
    """

    disease: str
    architecture: str
    rule: Rule
    seed: int
    half: Half
    shape: Shape = Shape()
    flaw: str = ""
    onset: int = 0
    batch: int = 16
    noise: float = 0.0
    tuned: int = 0
    task: str = ""
    steps: int = 300
    lr: float = 1.0

    @property
    def name(self) -> str:
        """A file name that no other case has."""
        flaw = self.flaw or self.task or ("tuned" if self.tuned else "")
        norm = "post" if self.shape.post_norm else "pre"
        depth = f"{norm}{self.shape.layers}{'' if self.shape.skip else 'noskip'}"
        parts = [self.disease or "healthy", flaw, self.architecture, depth, self.rule]
        return "-".join([part for part in parts if part] + [str(self.seed)])


FRESH = 1000
"""Added to the seeds of the judged half. A first half without it was judged once, and what it
taught about rank collapse went into the thresholds; so it was drawn anew."""
TWO, POST = Shape(2), Shape(2, post_norm=True)


def _pair(disease: str, flaw: str, one: Case, other: Case, onset: int = 0) -> tuple[Case, ...]:
    """Return a disease in two architectures, one for each half."""
    made = {"disease": disease, "flaw": flaw, "onset": onset}
    return (
        replace(one, **made, half="fixing"),
        replace(other, **made, half="judged", seed=other.seed + FRESH),
    )


def _of(
    architecture: str, rule: Rule, seed: int, shape: Shape = TWO, lr: float = 1.0, batch: int = 16
) -> Case:
    return Case("", architecture, rule, seed, "fixing", shape, lr=lr, batch=batch)


SICK: tuple[Case, ...] = (
    *_pair("collapsed", "fast_queries", _of("decoder", "adam", 1), _of("vision", "adamw", 2)),
    *_pair("diverging", "overflow", _of("encoder", "adamw", 3), _of("decoder", "sgd", 4), 60),
    *_pair("diverging", "endless_warmup", _of("vision", "adam", 5), _of("decoder", "adam", 6), 50),
    *_pair("no_loss", "smoothing", _of("decoder", "adamw", 7), _of("encoder", "adam", 8)),
    *_pair("no_loss", "untold", _of("vision", "cosine", 33), _of("translator", "adam", 34)),
    *_pair("spike", "jump", _of("decoder", "adamw", 9), _of("translator", "adamw", 10), 100),
    *_pair("spike", "glitch", _of("vision", "adam", 11), _of("encoder", "adamw", 12, POST), 100),
    *_pair(
        "rank_collapse",
        "",
        _of("decoder", "adam", 13, Shape(8, skip=False)),
        _of("vision", "adamw", 14, Shape(8, post_norm=True, skip=False)),
    ),
    *_pair(
        "rank_collapse",
        "",
        _of("vision", "adamw", 16, Shape(12, post_norm=True), lr=4.0),
        _of("encoder", "adam", 15, Shape(14, post_norm=True)),
    ),
    *_pair("vanishing", "tiny_queries", _of("encoder", "sgd", 17), _of("vision", "sgd", 18)),
    *_pair("frozen", "frozen_queries", _of("decoder", "adam", 19), _of("encoder", "adamw", 20)),
    *_pair(
        "sink",
        "",
        _of("encoder", "adam", 21, Shape(2, sink=12.0)),
        _of("decoder", "cosine", 22, Shape(2, sink=12.0)),
    ),
    *_pair("dead_heads", "dead_head", _of("vision", "adamw", 23), _of("decoder", "adam", 24)),
    *_pair("duplicate_heads", "twins", _of("decoder", "adam", 25), _of("encoder", "cosine", 26)),
    *_pair("never_learns", "left_out", _of("decoder", "adamw", 27), _of("vision", "adam", 28)),
    *_pair(
        "never_learns",
        "",
        _of("encoder", "adam", 29, Shape(3, cut=1)),
        _of("decoder", "cosine", 30, Shape(3, cut=1)),
    ),
    *_pair("one_head", "one_awake", _of("encoder", "sgd", 31), _of("vision", "sgd", 32)),
)
"""Every disease twice, the second time in another architecture and under another optimizer."""


def _healthy() -> tuple[Case, ...]:
    made = []
    rules: tuple[Rule, ...] = ("sgd", "adam", "adamw", "cosine")
    number = 100
    for architecture in ("decoder", "encoder", "vision", "translator"):
        for place, rule in enumerate(rules):
            for half in ("fixing", "judged"):
                number += 1
                shape = POST if (place + number) % 2 else TWO
                seed = number + (FRESH if half == "judged" else 0)
                made.append(Case("", architecture, rule, seed, half, shape))  # type: ignore[arg-type]
    for half, seeds in (("fixing", (141, 142, 143, 144)), ("judged", (1145, 1146, 1147, 1148))):
        tuned = Case("", "encoder", "adamw", seeds[0], half, noise=0.3, batch=4, tuned=150)  # type: ignore[arg-type]
        made += [
            replace(tuned, lr=0.3),
            replace(tuned, rule="cosine", seed=seeds[1], shape=POST, noise=0.2),
            Case("", "decoder", "adam", seeds[2], half, Shape(6)),  # type: ignore[arg-type]
            Case("", "decoder", "adam", seeds[3], half, task="repeated", steps=400),  # type: ignore[arg-type]
        ]
    return tuple(made)


HEALTHY = _healthy()
"""Four architectures under four rules, fine-tuning with small noisy batches, a deeper decoder, and
one that has to grow an induction head; twice, under other seeds."""
CASES = SICK + HEALTHY
