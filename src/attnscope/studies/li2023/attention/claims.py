"""The claims of ``li2023.attention``: Tables 3 and 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnscope.claims import Claim, above, below
from attnscope.probes.topics.topic_attention import UNIT
from attnscope.studies.li2023._held_out import (
    BASELINES,
    KINDS,
    OTHER,
    TOPIC,
    TRAINED,
    UNTRAINED,
    WORD,
    ratio,
)
from attnscope.trajectory import Readings, final, initial

if TYPE_CHECKING:
    from attnscope.studies.li2023.attention.study import AttentionStudy

SCALED = ", inputs × √V"
"""Ending of the cases whose one-hot inputs are brought to unit variance."""
TABLE3 = {
    "Adam 0.003": (0.00759, 0.0108, 0.00689),
    "Adam 0.01": (0.00811, 0.0100, 0.00707),
    "Adam 0.03": (0.00453, 0.0116, 0.00665),
    "SGD 0.01": (0.0105, 0.0106, 0.00673),
    "SGD 0.03": (0.0140, 0.0103, 0.00641),
}
"""The paper's means over three runs (SGD 0.01: one), in the order of ``KINDS``."""
SPREAD3 = {
    "Adam 0.003": (0.00171, 0.000657, 0.000160),
    "Adam 0.01": (0.000705, 0.000392, 0.000178),
    "Adam 0.03": (0.000346, 0.000460, 0.000200),
    "SGD 0.03": (0.00158, 0.000357, 0.0000239),
}
"""What the paper writes after its ±."""
TABLE4 = (0.0916, 0.00185, 0.00256)
"""Means over the 7 of 10 runs of Adam 0.003 and 0.01 whose W^V shows a diagonal."""
POOL4 = ("Adam 0.003", "Adam 0.01")
VISIBLE = 2.0
"""Standard deviations by which the mean diagonal entry must stand out to count as visible."""
MARGIN = 1.2
"""Least ratio that counts as topic structure: half of the smallest effect in Table 3, 1.41."""
TOPICS = "same topic, different words, over different topics"
WORDS = "same word over same topic, different words"

SLOW = (
    "attention has not left the uniform: one-hot inputs give SGD gradients of the order of "
    "1/V, and at this rate W^V itself is still near its start after all steps (see the loss "
    "over training). With inputs of unit variance the same rates do find the topics."
)
SAME_WORD = (
    "the order depends on when training ends. Same-word attention is first the lower, as in the "
    "paper, and rises later, when W^V grows a diagonal: a visible word at a selected position is "
    "right about every second time, so it pays to repeat it (see attention over training)."
)
VALUES = (
    "topics are told apart more sharply here, and words pay [MASK] next to no attention. Single "
    "runs of Adam 0.01 with 10,000 fixed documents seen 20 times, with selected positions hidden "
    "from attention as in the released code, with both, and with inputs of unit variance have "
    "ratios of same topic to different topics from 2.5 to 3.9, not the paper's 1.4. It "
    "does not say how long it trained and from which start."
)
DIAGONAL = (
    "the paper chose by eye. The diagonal does grow with training, and attention to the same word "
    "with it, but it stands out by less than one standard deviation of the other entries of its "
    "topic after 5,000 steps (see the runs of Table 4): no run would be chosen, and there is "
    "nothing to decide."
)


def claims(study: AttentionStudy) -> list[Claim]:
    """Return what Tables 3 and 4 say."""
    known = [case for case in study.settings if case in TABLE3]
    scaled = [case for case in study.settings if case.startswith("SGD")]
    found = [_topics(case) for case in study.settings]
    found += [_same_word(case) for case in known if case != "SGD 0.01"]
    found += [_values(case) for case in known]
    found += [
        Claim(
            f"scaled-{_key(case)}",
            f"{case} with inputs of unit variance finds the topics.",
            compared,
            (case + SCALED, TRAINED, TOPIC, OTHER),
            above(MARGIN),
            ((case, TRAINED, TOPIC, OTHER), "the same rate on one-hot inputs as they are"),
            "beyond the paper",
            "not stated",
            TOPICS,
        )
        for case in scaled
    ]
    return found + (_diagonal(study.pool) if study.pool else [])


def compared(run: Readings, given: tuple[str, Any, str, str]) -> np.ndarray:
    """Return the largest ratio of two kinds of pairs in some readings of a case."""
    case, readings, over, under = given
    found = [ratio(when(run.of(case).get(name)), over, under) for name, when in readings]
    return np.max(found, axis=0)


def factor(ours: np.ndarray, paper: tuple[float, ...]) -> np.ndarray:
    """Return by what factor the worst of the three means is off, one number per run."""
    return np.asarray(np.exp(np.abs(np.log(ours / np.array(paper))).max(axis=-1)))


def prominence(run: Readings, case: str) -> np.ndarray:
    """Return how far the diagonal of W^V stands out after training, one number per seed.

    It is the mean diagonal entry less the mean entry of two different words of one topic, over the
    standard deviation of the latter entries.
    """
    matrices = final(run.of(case).value_matrix).to_numpy()[:, 1:, 1:]
    topic = run.data.topic.to_numpy()[1:]
    diagonal = np.eye(len(topic), dtype=np.bool_)
    same = (topic[:, None] == topic) & ~diagonal
    return np.array([(m[diagonal].mean() - m[same].mean()) / m[same].std() for m in matrices])


def diagonal_runs(run: Readings, pool: list[str]) -> np.ndarray:
    """Return the three means of the runs that show a diagonal, shape ``(run, kind)``."""
    ends = [final(run.of(case).attention)[prominence(run, case) > VISIBLE] for case in pool]
    return np.concatenate(ends)


def _topics(case: str) -> Claim:
    paper = dict(zip(KINDS, TABLE3.get(case, ()), strict=False))
    return Claim(
        f"topics-{_key(case)}",
        f"{case}: words attend more to other words of their topic than to words of other topics.",
        compared,
        (case, TRAINED, TOPIC, OTHER),
        above(MARGIN),
        (
            (case, BASELINES, TOPIC, OTHER),
            "the larger ratio of the untrained model and of topics shuffled among words",
        ),
        "Table 3",
        f"ratio {paper[TOPIC] / paper[OTHER]:.2f}" if paper else "not run",
        TOPICS,
        reason=SLOW if case.startswith("SGD") else "",
    )


def _same_word(case: str) -> Claim:
    paper = TABLE3[case][0] / TABLE3[case][1]
    lower = paper < 1
    return Claim(
        f"same-word-{_key(case)}",
        f"{case}: words attend {'less' if lower else 'more'} to the same word than to other words "
        "of their topic.",
        compared,
        (case, TRAINED, WORD, TOPIC),
        below(0.95) if lower else above(1.05),
        ((case, UNTRAINED, WORD, TOPIC), "the untrained model"),
        "Table 3",
        f"ratio {paper:.2f}",
        WORDS,
        reason=SAME_WORD if lower else "attention has not left the uniform, as for the topics.",
    )


def _values(case: str) -> Claim:
    def off(run: Readings, uniform: bool) -> np.ndarray:
        ours = final(run.of(case).attention).to_numpy()
        return factor(np.full((1, 3), 1 / UNIT) if uniform else ours, TABLE3[case])

    return Claim(
        f"values-{_key(case)}",
        f"{case}: the three means are the paper's, each within a quarter.",
        off,
        False,
        below(1.25),
        (True, "uniform attention, 0.01 for all three"),
        "Table 3",
        ", ".join(f"{value:g}" for value in TABLE3[case]),
        "largest factor between ours and the paper's",
        reason=VALUES if case.startswith("Adam") else "attention has not left the uniform.",
    )


def _diagonal(pool: list[str]) -> list[Claim]:
    def pooled(run: Readings, given: tuple[bool, int, int]) -> np.ndarray:
        chosen, over, under = given
        untrained = [initial(run.of(case).attention) for case in pool]
        kinds = diagonal_runs(run, pool) if chosen else np.concatenate(untrained)
        return np.asarray(kinds[:, over] / kinds[:, under])

    return [
        Claim(
            f"diagonal-{key}",
            f"Where W^V has a visible diagonal, {sentence}.",
            pooled,
            (True, over, over + 1),
            holds,
            ((False, over, over + 1), "all runs before training"),
            "Table 4, 7 of 10 runs chosen by eye",
            f"ratio {TABLE4[over] / TABLE4[over + 1]:{digits}}",
            f"{measure}, one number per chosen run",
            reason=DIAGONAL,
        )
        for key, over, digits, holds, measure, sentence in (
            (
                "same-word",
                0,
                ".1f",
                above(10),
                WORDS,
                "attention to the same word is more than ten times that to other words of the "
                "topic",
            ),
            (
                "topics",
                1,
                ".2f",
                below(0.9),
                TOPICS,
                "words attend less to other words of their topic than to words of other topics",
            ),
        )
    ]


def _key(case: str) -> str:
    return case.replace(" ", "-").lower()
