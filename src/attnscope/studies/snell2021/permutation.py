"""Words in a fixed other order are known as well and far harder to attend to (section 6.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.bounds import Count, Several
from attnscope.claims import Claim, above, below
from attnscope.engines import Adam
from attnscope.report import Figure, Heat, Panel, Rule
from attnscope.studies.snell2021._copying_study import (
    BLUE,
    EARLY,
    LEARNED,
    RED,
    UNIFORM,
    CountTableStudy,
    curve,
    gap_panel,
    known_unattended,
    reaches,
    seed_lines,
    stage_panel,
)
from attnscope.tasks.copying import Copying
from attnscope.trajectory import Readings

COPIED, REORDERED = "copied", "reordered"
BOTH = ((COPIED, "copied", BLUE), (REORDERED, "in the order of π", RED))
"""What is done with the words, with labels and colours."""
SOURCE = "section 6.2"
PERFECT = 0.99


@dataclass(frozen=True)
class PermutationStudy(CountTableStudy):
    """Copying, and copying into the order of one fixed random permutation π, side by side.

    Both have the same inputs, the same count table and, seed by seed, the same start. Each seed has
    its own π (eq 26). Two more cases hold attention at uniform. The paper gives 300 steps for
    copying, and no number for π.
    """

    seeds: Count = 10
    training: Adam = Adam(rate=1e-3, steps=600, batch=128)
    points: Several = 61
    verdict: Count = 300

    quick = {"seeds": 3, "steps": 400, "points": 41, "length": 20, "types": 30, "width": 64}
    desk = {"seeds": 5, "steps": 300, "points": 31}
    cases = (COPIED, REORDERED, COPIED + UNIFORM, REORDERED + UNIFORM)

    def task(self, case: str, seed: int = 0) -> Copying:
        """Return the task of a case; π is that of the seed."""
        reordered = case.startswith(REORDERED)
        return Copying(self.length, self.types, reorder_seed=seed if reordered else None)

    def claims(self) -> list[Claim]:
        """Return what section 6.2 says."""
        step, copied = self.verdict, self.task(COPIED)

        def distance(_: Readings, other: Copying) -> float:
            """Largest difference of C from that of copying, over words that both have."""
            words = slice(other.vocabulary)
            return float(np.abs(copied.counts()[words, words] - other.counts()).max())

        def apart(run: Readings, which: tuple[str, str]) -> xr.DataArray:
            name, kind = which
            one, other = (curve(run.of(case + kind), name) for case in (COPIED, REORDERED))
            return abs(one - other).sel(step=slice(step)).mean("step", skipna=False)

        return [
            Claim(
                "copying-perfect",
                f"Copying always reaches perfect accuracy within {step} steps.",
                self.accuracy,
                COPIED,
                above(PERFECT),
                (REORDERED, "the words in the order of π"),
                SOURCE,
                "always perfect within 300 iterations",
                f"accuracy at step {step}",
            ),
            Claim(
                "reordering-fails",
                f"Putting the words into the order of π always fails: at step {step} no seed has "
                "learned it.",
                self.accuracy,
                REORDERED,
                below(LEARNED),
                (COPIED, "copying"),
                SOURCE,
                "always fails",
                f"accuracy at step {step}",
            ),
            Claim(
                "same-counts",
                "Copying and π have the same count table, so what can be known of words is the "
                "same.",
                distance,
                self.task(REORDERED),
                below(1e-12),
                (Copying(self.length, self.length), f"permutations of {self.length} words"),
                SOURCE,
                "β^uf behaves exactly the same for these two tasks",
                "largest difference of entries of C; exact",
            ),
            Claim(
                "same-knowledge",
                "With attention held at uniform, words become known alike in both tasks.",
                apart,
                ("knowledge", UNIFORM),
                below(0.05),
                (("attention", ""), "attention to them, where attention is learned"),
                SOURCE,
                "β^uf behaves exactly the same for these two tasks",
                "difference of the shares of words whose gold position has the largest β, mean "
                f"over the first {step} steps",
            ),
            Claim(
                "known-unattended",
                "In the order of π many words are known while attention has not followed.",
                lambda run, name: known_unattended(run.of(REORDERED), name),
                "knowledge",
                above(0.3),
                ("accuracy", "accuracy in place of knowledge: such words cannot be said yet"),
                SOURCE,
                "learning the correct α can be challenging",
                EARLY,
            ),
            Claim(
                "attention-lags",
                "From knowledge to attention, π takes at least three times as long as copying.",
                lag,
                REORDERED,
                above(3.0),
                (COPIED, "copying"),
                SOURCE,
                "copying is much easier to learn",
                "steps from half of the words known to half of them attended, over their mean for "
                "copying; a run that never gets there counts with its last step",
            ),
        ]

    def figures(self, run: Readings) -> list[Figure]:
        """Draw accuracy of both tasks with their count table, and knowledge beside attention."""
        rule = Rule(float(self.verdict), f"step {self.verdict}", vertical=True)
        accuracy = (*seed_lines(run, "accuracy", BOTH), rule)
        counts = self.task(COPIED).counts()
        edges = np.arange(len(counts) + 1) - 0.5
        table = Heat(edges, edges, counts, "expected count of one pair")
        return [
            Figure(
                "fixed-permutation",
                "The same knowledge of words, and yet one task is far harder",
                f"Left: accuracy on {self.held_out} unseen sequences of {self.length} of "
                f"{self.types} words over steps of Adam, {self.seeds} seeds (Snell 2021, section "
                "6.2). Middle: with attention held at uniform, log β at the position a word comes "
                "from less its mean elsewhere. Right: the count table C, which is the same for "
                "both tasks.",
                (
                    Panel("accuracy", "step", "accuracy", accuracy),
                    gap_panel(run, BOTH),
                    Panel("count table C of both", "output word", "input word", (table,)),
                ),
            ),
            Figure(
                "attention-cannot-follow",
                "Attention follows knowledge in copying, and lags far behind it in the order of π",
                "Share of words whose gold position (where they come from) has the largest β "
                f"(knowledge) and the largest α (attention), and accuracy; {self.seeds} seeds and, "
                "thick, their mean; chance dashed.",
                tuple(stage_panel(run.of(case), label, self.length) for case, label, _ in BOTH),
                columns=2,
            ),
        ]


def lag(run: Readings, case: str) -> xr.DataArray:
    """Return the steps from knowledge to attention, over their mean for copying."""
    late, usual = (
        reaches(run.of(name), "attention", 0.5) - reaches(run.of(name), "knowledge", 0.5)
        for name in (case, COPIED)
    )
    # Where copying has not been learned at all there is nothing to compare with.
    return late / (float(usual.mean()) or np.nan)
