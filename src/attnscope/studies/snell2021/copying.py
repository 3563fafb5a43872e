"""Copying permutations sometimes fails, since words there tell nothing of places (Fig 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnscope.claims import Claim, above, below
from attnscope.probes.shares import share_curve
from attnscope.report import Dots, Figure, Line, Mark, Panel, Rule
from attnscope.studies.snell2021._copying_study import (
    BLUE,
    EARLY,
    GREEN,
    LEARNED,
    PURPLE,
    RED,
    SKY,
    UNIFORM,
    CountTableStudy,
    curve,
    gap_panel,
    known_unattended,
    lines,
    reaches,
    seed_lines,
    stage_panel,
)
from attnscope.tasks.copying import Copying
from attnscope.trajectory import Readings

PERMUTED = "permutations"
DRAWN = "draws"
PERMUTED_MIXED = "permutations, two sets"
DRAWN_UNION = "draws, both sets at once"
DRAWN_MIXED = "draws, two sets"
LEARNERS = (PERMUTED, DRAWN, PERMUTED_MIXED, DRAWN_UNION, DRAWN_MIXED)
"""Cases in which attention learns."""
BOTH = ((DRAWN, "draws", BLUE), (PERMUTED, "permutations", RED))
"""The two cases that are drawn side by side, with their labels and colours."""
KNOWN = 0.3
"""Words are known from this share on."""
TELLS = 0.1
"""A count table tells places from this on: α^IBM at the gold position over its mean, less 1."""
FIG3 = "section 3.3, Fig 3 left"
RIGHT = "section 3.3, Fig 3 right; appendix A.3"


@dataclass(frozen=True)
class CopyingStudy(CountTableStudy):
    """Accuracy, attention and knowledge of words while sequences are learned to be copied.

    Sequences are permutations of the same 40 words, or 40 of 60 words in random order; permutations
    of one of two disjoint sets of 40 words, or 40 of these 80 words; or 40 of 60 words of one of
    two disjoint sets. Two more cases hold attention at uniform.
    """

    quick = {"seeds": 3, "steps": 300, "points": 31, "length": 20, "types": 30, "width": 64}
    desk = {"seeds": 10, "steps": 200, "points": 101}
    cases = (*LEARNERS, PERMUTED + UNIFORM, DRAWN + UNIFORM)

    def task(self, case: str, seed: int = 0) -> Copying:
        """Return the task of a case, the same for all seeds."""
        return {
            PERMUTED: Copying(self.length, self.length),
            DRAWN: Copying(self.length, self.types),
            PERMUTED_MIXED: Copying(self.length, self.length, sets=2),
            DRAWN_UNION: Copying(self.length, 2 * self.length),
            DRAWN_MIXED: Copying(self.length, self.types, sets=2),
        }[case.removesuffix(UNIFORM)]

    def claims(self) -> list[Claim]:
        """Return what the paper says of Fig 3, and what is behind it."""
        length, types, step = self.length, self.types, self.verdict
        accuracy = f"accuracy at step {step}"
        strength = length * (types - 1) / (types - length)
        late = "a run that never gets there counts with its last step"
        union = "draws from both sets at once: the words of the mixture, of which C tells"

        def of_permutations(
            prefix: str, case: str, words: tuple[str, str], control: tuple[str, str], source: str
        ) -> list[Claim]:
            return [
                Claim(
                    f"{prefix}sometimes-fails",
                    f"Copying {words[0]} of {length} words sometimes fails: at step {step} some "
                    "seeds have not learned.",
                    lambda run, case: (self.accuracy(run, case) <= LEARNED).mean(),
                    case,
                    above(0.0),
                    control,
                    source,
                    "some of 20 seeds",
                    f"share of seeds with accuracy {LEARNED:g} or less at step {step}",
                ),
                Claim(
                    f"{prefix}slower",
                    f"Copying {words[1]} converges slower than copying draws.",
                    lambda run, case: reaches(run.of(case)) / reaches(run.of(DRAWN)).mean(),
                    case,
                    above(1.5),
                    (DRAWN_UNION, union),
                    source,
                    "converges slower",
                    f"step where accuracy exceeds {LEARNED:g} over its mean for draws; {late}",
                    each=False,
                ),
            ]

        return [
            Claim(
                "draws-learned",
                f"Sequences of {length} of {types} words are learned every time within {step} "
                "steps.",
                self.accuracy,
                DRAWN,
                above(LEARNED),
                (DRAWN + UNIFORM, "the same words with attention held at uniform"),
                FIG3,
                "all 20 seeds",
                accuracy,
            ),
            *of_permutations(
                "",
                PERMUTED,
                ("permutations of one set", "permutations"),
                (DRAWN, f"{length} of {types} words"),
                FIG3,
            ),
            *of_permutations(
                "mixed-",
                PERMUTED_MIXED,
                ("permutations of one of two disjoint sets", "a mixture of permutations"),
                (DRAWN_UNION, f"{length} words of both sets at once"),
                RIGHT,
            ),
            Claim(
                "counts-tell",
                "Before training, the count table of draws tells where a word was copied from; "
                "that of permutations does not.",
                excess,
                DRAWN,
                above(TELLS),
                (PERMUTED, "permutations of one set of words"),
                FIG3 + "; section 4.3, Fig 4",
                "C is non-informative under a distribution of permutations",
                "α^IBM at the gold position over its mean at all words, less 1; exact",
            ),
            Claim(
                "mixed-counts",
                "The count table of the mixture tells the set of words, and yet within a sequence "
                "β is the same at every position.",
                lambda run, case: abs(excess(run, case)),
                PERMUTED_MIXED,
                below(1e-9),
                (DRAWN_MIXED, "draws of one of two sets of words"),
                RIGHT,
                "β is still uniformly 0.25 (Fig 8)",
                "size of α^IBM at the gold position over its mean at all words, less 1; exact",
            ),
            Claim(
                "counts-predict",
                "Before training, the count table says which of the tasks of Fig 3 are slow: "
                "those in which it tells no places.",
                pairs_apart,
                ((PERMUTED, PERMUTED_MIXED), (DRAWN, DRAWN_UNION)),
                above(1.5),
                (
                    ((PERMUTED_MIXED, DRAWN_UNION), (PERMUTED, DRAWN)),
                    "the same four tasks grouped by the size of the vocabulary",
                ),
                "sections 3.3 and 4.3, Fig 3, Fig 4, Fig 8",
                "hard for the attention-based model to learn",
                f"mean step where accuracy exceeds {LEARNED:g} in one pair of tasks over the "
                f"other; {late}",
                each=False,
            ),
            Claim(
                "counts-suffice",
                "A count table that tells places is enough: draws of one of two disjoint sets, "
                f"which it tells as well as draws of one set, are learned within {step} steps.",
                self.accuracy,
                DRAWN_MIXED,
                above(LEARNED),
                (PERMUTED_MIXED, "permutations of one of two disjoint sets"),
                "beyond the paper; section 4.3 and appendix A.3",
                "none; the converse of what is said of Fig 8",
                accuracy,
                each=False,
                reason="which of the two sets is learned first, and then next to nothing: the loss "
                f"stays near log {types} and β near 1/{types}, at the gold position as elsewhere. "
                f"In C, what tells sets apart is L(K - 1)/(K - L) = {strength:.0f} times as strong "
                f"as what tells the words of a set apart (eigenvalues, K = {types}); draws of one "
                "set have no such part. It takes more than a table that tells places.",
            ),
            Claim(
                "known-under-uniform",
                "With attention held at uniform, words are still learned from draws.",
                self.knowledge,
                DRAWN + UNIFORM,
                above(KNOWN),
                (PERMUTED_MIXED, "permutations of one of two sets, where nothing is learned"),
                "sections 3.2 and 3.3",
                "KTIW can be learned when attention has not",
                f"share of words whose gold position has the largest β, at step {step}",
            ),
            Claim(
                "unknown-under-uniform",
                "With attention held at uniform, words are not learned from permutations.",
                self.knowledge,
                PERMUTED + UNIFORM,
                below(KNOWN),
                (DRAWN + UNIFORM, f"{length} of {types} words, attention held at uniform"),
                "sections 3.2 and 3.3",
                "the proxy provably cannot",
                f"share of words whose gold position has the largest β, at step {step}",
                reason="the proof is of a proxy that sees words alone. States of an LSTM hold "
                "places as well: a wide one comes to say the words of a permutation in order "
                "from their mean, and words become known on the way, though later than from draws.",
            ),
            Claim(
                "knowledge-first",
                "Knowledge of words comes first: in draws, many words know their gold position "
                "while attention has not been learned.",
                lambda run, name: known_unattended(run.of(DRAWN), name),
                "knowledge",
                above(KNOWN),
                ("accuracy", "accuracy in place of knowledge: such words cannot be said yet"),
                "sections 1 and 3.3",
                "KTIW drives the learning of attention",
                EARLY,
                reason="undecided where attention is there at the first record point after the "
                "start: more --points would show what came before.",
            ),
            Claim(
                "attention-later",
                "In draws, attention reaches half of the words much later than knowledge does.",
                lag,
                ("knowledge", "attention"),
                above(1.5),
                (("attention", "accuracy"), "accuracy after attention: these two come together"),
                "sections 1 and 3.3",
                "KTIW first, attention second",
                "step where the largest α is at the gold position for half of the words, over the "
                "same of β",
            ),
            Claim(
                "attention-not-ahead",
                "Attention fails when knowledge fails: in no task does attention run ahead of "
                "knowledge.",
                lead,
                ("attention", "knowledge", LEARNERS),
                below(0.15),
                (
                    ("knowledge", "attention", (DRAWN,)),
                    "the other way around: knowledge ahead of attention, in draws",
                ),
                "section 3.3",
                "KTIW can be learned without attention, but not the other way around",
                "share of words whose gold position has the largest α, less the same of β; "
                "largest over all steps and tasks",
            ),
        ]

    def margins(self) -> dict[str, tuple[float, str]]:
        """Return where the count table of draws tells places, exactly.

        A word that is drawn is in its sequence for certain, and each other one with probability
        (L-1)/(K-1), so α^IBM at the gold position over its mean at words is L(K-1)/(K-1 + (L-1)²).
        It is 1 at L = K, permutations, where words tell nothing of places and are not learned with
        attention held at uniform; ``types`` are more than ``length`` here, so that line is the edge
        of what can be set. How many steps learning takes is not in it.
        """
        length, types = self.length, self.types
        told = length * (types - 1) / (types - 1 + (length - 1) ** 2)
        learnable = (float(types - length), "length = types")
        return {
            "counts-tell": (told - 1 - TELLS, f"α^IBM at the gold position {1 + TELLS} × its mean"),
            "known-under-uniform": learnable,
            "draws-learned": learnable,
        }

    def figures(self, run: Readings) -> list[Figure]:
        """Draw Fig 3, knowledge beside attention, and where attention goes."""
        stages = [stage_panel(run.of(case), label, self.length) for case, label, _ in BOTH]
        near: list[Mark] = []
        for case, label, color in BOTH:
            near += lines(run.of(case).offset.sel(step=self.verdict), label, color)
        xlabel, ylabel = "positions after the gold one", "share of words"
        return [
            self.fig3(run),
            Figure(
                "knowledge-first",
                "Knowledge of words first, attention second",
                "Left and middle: share of words whose gold position (where they were copied from) "
                "has the largest β (knowledge) and the largest α (attention), and accuracy; "
                f"{self.seeds} seeds and, thick, their mean; chance dashed. Right: log β at the "
                "gold position less its mean elsewhere, with attention held at uniform: the count "
                f"table tells the gold position of draws (α^IBM there is {self.told(DRAWN):.2f} "
                "times its mean at words) and not that of permutations "
                f"({self.told(PERMUTED):.2f} times).",
                (*stages, gap_panel(run, BOTH)),
            ),
            Figure(
                "where-attention-goes",
                "Where attention is while copying has not been learned",
                f"Left: share of words whose largest attention at step {self.verdict} is so many "
                "positions after the one they were copied from. Right: share of words whose "
                "largest attention is at END, the last position. One curve for each seed. States "
                "of an LSTM hold earlier words too, so attention to a later position can serve as "
                "well.",
                (
                    Panel(f"at step {self.verdict}", xlabel, ylabel, tuple(near)),
                    Panel("at END", "step", ylabel, seed_lines(run, "at end", BOTH)),
                ),
                columns=2,
            ),
        ]

    def fig3(self, run: Readings) -> Figure:
        """Draw Fig 3: every seed, and the share that has learned."""
        length, types, step = self.length, self.types, self.verdict
        end = Rule(float(step), "end of the paper's runs", vertical=True)
        names = {
            DRAWN: (f"{length} of {types} words", BLUE),
            PERMUTED: ("permutations", RED),
            DRAWN_UNION: (f"{length} of {2 * length} words", SKY),
            PERMUTED_MIXED: ("permutations of one of two sets", PURPLE),
            DRAWN_MIXED: (f"{length} of {types} words of one of two sets", GREEN),
        }
        panels = []
        for title, cases in (
            ("one set of words", (DRAWN, PERMUTED)),
            ("two disjoint sets", (DRAWN_UNION, DRAWN_MIXED, PERMUTED_MIXED)),
        ):
            marks = seed_lines(run, "accuracy", [(case, *names[case]) for case in cases])
            panels.append(Panel(title, "step", "accuracy", (*marks, end)))
        shares: list[Mark] = []
        for number, case in enumerate((DRAWN, PERMUTED, PERMUTED_MIXED)):
            label, color = names[case]
            learned = curve(run.of(case), "accuracy") > LEARNED
            share, _, _ = share_curve(learned.to_numpy())
            shares.append(Line(learned["step"].to_numpy(), share, label, color))
            # Side by side, so that intervals of equal shares can be told apart.
            x = np.array([step + (number - 1) * 0.02 * self.end])
            interval = share_curve(learned.sel(step=[step]).to_numpy())
            shares.append(Dots(x, *interval, color=color))
        label = f"share of seeds above {LEARNED:g}"
        panels.append(Panel("have learned", "step", label, (*shares, end)))
        return Figure(
            "fig3-copying",
            "Permutations of the same words are hard to copy",
            f"Accuracy on {self.held_out} unseen sequences over steps of Adam, one curve for each "
            f"of {self.seeds} seeds (Snell 2021, Fig 3, whose runs end at step {step}). Left: "
            f"permutations of {length} words, and {length} of {types} words. Middle: "
            f"permutations of one of two disjoint sets of {length}, draws from both sets at "
            f"once, and draws from one of two sets of {types}. Right: share of seeds "
            "that have learned, at the line with 95 % intervals by Clopper and Pearson.",
            tuple(panels),
        )


def excess(run: Readings, case: str) -> xr.DataArray:
    """Return by how much the count table tells places: α^IBM at gold over its mean, less 1."""
    return run.of(case).theory.told.isel(seed=[0]) - 1


def pairs_apart(run: Readings, pairs: tuple[tuple[str, str], tuple[str, str]]) -> xr.DataArray:
    """Return the mean step at which one pair of cases is learned, over that of another, by seed."""
    steps = reaches(run)
    slow, fast = (steps.sel(case=list(pair)).mean("case") for pair in pairs)
    return slow / fast


def lag(run: Readings, names: tuple[str, str]) -> xr.DataArray:
    """Return when the second of two readings of draws reaches a half, over when the first does."""
    start, end = (reaches(run.of(DRAWN), name, 0.5) for name in names)
    return end / start.clip(min=1.0)


def lead(run: Readings, which: tuple[str, str, tuple[str, ...]]) -> xr.DataArray:
    """Return how far one reading runs ahead of another at most, over some cases, by seed."""
    first, second, cases = which
    ahead = curve(run, first) - curve(run, second)
    return ahead.sel(case=list(cases)).max(("case", "step"), skipna=False)
