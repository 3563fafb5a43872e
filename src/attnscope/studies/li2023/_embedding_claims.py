"""The claims of ``li2023.embedding``: Theorem 1, its errata, and the paper's experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnscope.claims import above, below, within
from attnscope.studies.old import Claim
from attnscope.studies.li2023._block_means import block_means, contrast, gap, shuffled
from attnscope.studies.li2023._embedding_cases import FLOW, PRINTED, TRAININGS
from attnscope.trajectory import select
from attnscope.theory import li2023

if TYPE_CHECKING:
    from attnscope.studies.li2023.embedding import Embedding

ROUNDING = 1e-9
"""An optimum in double precision predicts the words' shares to better than this."""
SGD_SQUARED, ADAM_SQUARED, ADAM_ENTROPY = "SGD, squared", "Adam, squared", "Adam, cross-entropy"


def claims(study: Embedding) -> tuple[Claim, ...]:
    """Return every statement with its criterion and its control."""
    return (
        _family(study),
        _gap(study),
        _printed_example(study),
        _corrected_example(study),
        _leaves_example(study),
        _printed_bias(study),
        *(_larger(study, case) for case in TRAININGS),
        _adam(study),
        _tiny(study),
        _start(study),
        _entropy(study),
    )


def matrices(tree: xr.DataTree, case: str, snapshot: int = -1) -> np.ndarray:
    """E of the runs of a case, at the end or at the start, shape ``(seed, word, word)``."""
    return select(tree, "E", case).isel(snapshot=snapshot).to_numpy()


def gaps(study: Embedding, tree: xr.DataTree, case: str, step: int = -1) -> np.ndarray:
    """Average same-topic minus different-topic entry over c₃/v, for each seed."""
    means = select(tree, "blocks", case).isel(step=step).to_numpy()
    return gap(means, study.words) / li2023.topic_gap(study.population())


def violations(study: Embedding, tree: xr.DataTree, case: str, step: int = -1) -> np.ndarray:
    """Largest violation of Theorem 1's conditions over c₃/v, for each seed."""
    found = select(tree, "violation", case).isel(step=step).to_numpy()
    return np.asarray(found / li2023.topic_gap(study.population()))


def error(study: Embedding, matrix: np.ndarray, as_printed: bool = False) -> float:
    """Largest error of E's prediction, whatever the document's topics."""
    return float(li2023.embedding_residual(matrix, study.population(), as_printed).max())


def _errors_at_start(study: Embedding, tree: xr.DataTree) -> np.ndarray:
    return np.array([error(study, e) for e in matrices(tree, FLOW, 0)])


def _family(study: Embedding) -> Claim:
    return Claim(
        key="theorem1",
        sentence="The flow ends at an E that satisfies all conditions of Theorem 1.",
        source="Theorem 1",
        paper="optimal if and only if",
        statistic=lambda tree: violations(study, tree, FLOW),
        criterion=below(0.01),
        control_sentence="the random E of the start",
        control=lambda tree: violations(study, tree, FLOW, 0),
        measure="largest violation, over c₃/v",
    )


def _gap(study: Embedding) -> Claim:
    topic = study.population().topic_of
    expected = li2023.topic_gap(study.population())

    def mixed(tree: xr.DataTree) -> np.ndarray:
        ends = enumerate(matrices(tree, FLOW))
        means = [block_means(e, shuffled(topic, seed)) for seed, e in ends]
        return np.array([gap(mean, study.words) / expected for mean in means])

    return Claim(
        key="gap",
        sentence="On average words of one topic exceed words of two by 1/(v(1-(1-p_c)p_m)) in E.",
        source="Theorem 1, main text",
        paper=f"c₃/v = {expected:.4f}",
        statistic=lambda tree: gaps(study, tree, FLOW),
        criterion=within(0.99, 1.01),
        control_sentence="topics dealt to the words at random",
        control=mixed,
        measure="average same-topic minus different-topic entry, over c₃/v",
    )


def _printed_example(study: Embedding) -> Claim:
    printed = li2023.printed_example(study.population())
    return Claim(
        key="printed-example",
        sentence="The simplest example, W^E = √c₃ I and E = c₃ I, is an optimum.",
        source="main text, after Theorem 1",
        paper="optimal",
        statistic=lambda tree: np.full(study.seeds, error(study, printed)),
        criterion=below(ROUNDING),
        control_sentence="the random E of the start",
        control=lambda tree: _errors_at_start(study, tree),
        measure="largest error of the prediction, over all sets of topics",
        reason="with E_0j = 0 the theorem itself asks for E_00 = 0; E_00 = c₃ predicts [MASK], "
        "which is never the answer, with weight c₃ p_m (1-p_c-p_r). Only that row is wrong.",
    )


def _corrected_example(study: Embedding) -> Claim:
    population = study.population()
    right, wrong = li2023.corrected_example(population), li2023.printed_example(population)
    return Claim(
        key="corrected-example",
        sentence="With E_00 = 0 the simplest example is an optimum: E = c₃ diag(0, 1, ..., 1).",
        source="Theorem 1, with the example corrected",
        paper="not stated",
        statistic=lambda tree: np.full(study.seeds, error(study, right)),
        criterion=below(ROUNDING),
        control_sentence="the example as printed, E = c₃ I",
        control=lambda tree: np.full(study.seeds, error(study, wrong)),
        measure="largest error of the prediction, over all sets of topics",
    )


def _leaves_example(study: Embedding) -> Claim:
    return Claim(
        key="leaves-example",
        sentence="The flow that starts at the printed example leaves it for an optimum.",
        source="beyond the paper; Theorem 1",
        paper="would stay",
        statistic=lambda tree: violations(study, tree, PRINTED),
        criterion=below(0.01),
        control_sentence="where it starts, E = c₃ I but for a little noise",
        control=lambda tree: violations(study, tree, PRINTED, 0),
        measure="largest violation of Theorem 1's conditions, over c₃/v",
    )


def _printed_bias(study: Embedding) -> Claim:
    right = li2023.corrected_example(study.population())
    return Claim(
        key="printed-bias",
        sentence="Theorem 1 holds with the bias of the main text, the same for all words and for "
        "[MASK].",
        source="main text; the appendix gives the bias to words alone",
        paper="b_i for all i",
        statistic=lambda tree: np.full(study.seeds, error(study, right, as_printed=True)),
        criterion=below(ROUNDING),
        control_sentence="the random E of the start",
        control=lambda tree: _errors_at_start(study, tree),
        measure="largest error of the corrected example's prediction",
        reason="the theorem's E predicts 0 for [MASK] without a bias, so b_0 must be 0, as in the "
        "appendix; the error is exactly |b_0| = p_m p_r/((1-(1-p_c)p_m)Tv).",
    )


def _larger(study: Embedding, case: str) -> Claim:
    topic = study.population().topic_of

    def mixed(tree: xr.DataTree) -> np.ndarray:
        ends = enumerate(matrices(tree, case))
        return np.array([contrast(e, shuffled(topic, seed)) for seed, e in ends])

    return Claim(
        key="larger-" + case.lower().replace(", ", "-"),
        sentence=f"{case}: entries of E are larger on average for two words of one topic than for "
        "words of two.",
        source="Figs 1, 2, 9 and 10",
        paper="larger on average",
        statistic=lambda tree: select(tree, "contrast", case).isel(step=-1).to_numpy(),
        criterion=above(0.2),
        control_sentence="topics dealt to the words at random",
        control=mixed,
        measure="difference of the means without the diagonal, over the spread of different-topic "
        "entries",
    )


def _adam(study: Embedding) -> Claim:
    return Claim(
        key="adam-gap",
        sentence=f"Adam with squared loss brings the gap to Theorem 1's c₃/v in {study.epochs:,} "
        "steps, on documents of finite length.",
        source="Theorem 1; the synthetic experiments",
        paper="blocks visible",
        statistic=lambda tree: gaps(study, tree, ADAM_SQUARED),
        criterion=within(0.9, 1.1),
        control_sentence="SGD with the same learning rate",
        control=lambda tree: gaps(study, tree, SGD_SQUARED),
        measure="average same-topic minus different-topic entry, over c₃/v",
    )


def _tiny(study: Embedding) -> Claim:
    return Claim(
        key="sgd-squared-tiny",
        sentence=f"SGD with squared loss leaves the blocks tiny after {study.epochs:,} steps.",
        source="Figs 9 and 10",
        paper="means .0055 and -.00016",
        statistic=lambda tree: gaps(study, tree, SGD_SQUARED),
        criterion=below(0.25),
        control_sentence="Adam with the same learning rate",
        control=lambda tree: gaps(study, tree, ADAM_SQUARED),
        measure="average same-topic minus different-topic entry, over c₃/v",
    )


def _start(study: Embedding) -> Claim:
    topic, size = study.population().topic_of, study.population().vocabulary
    expected = size * study.start**2 / study.words

    def ratio(tree: xr.DataTree, diagonal: bool) -> np.ndarray:
        random = matrices(tree, SGD_SQUARED, 0)
        if not diagonal:
            random = random * (1 - np.eye(size))
        return gap(block_means(random, topic), study.words) / expected

    return Claim(
        key="start",
        sentence="A random W^E has a gap before any training, dσ²/v, as the same topic includes "
        "the word itself.",
        source="beyond the paper",
        paper="not stated",
        statistic=lambda tree: ratio(tree, True),
        criterion=within(0.8, 1.2),
        control_sentence="the same E with its diagonal taken out",
        control=lambda tree: ratio(tree, False),
        measure="average same-topic minus different-topic entry at the start, over dσ²/v",
    )


def _entropy(study: Embedding) -> Claim:
    return Claim(
        key="cross-entropy",
        sentence="With cross-entropy the gap leaves c₃/v behind: Theorem 1 is of squared loss.",
        source="the synthetic experiments; the theory is for squared loss",
        paper="not stated",
        statistic=lambda tree: gaps(study, tree, ADAM_ENTROPY),
        criterion=above(3),
        control_sentence="Adam with squared loss",
        control=lambda tree: gaps(study, tree, ADAM_SQUARED),
        measure="average same-topic minus different-topic entry, over c₃/v",
    )
