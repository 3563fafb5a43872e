"""Toy tasks told learnable or not, from texts alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.datasets.kinds import LabelledText, ParallelText, Split
from attnscope.prediction.asked import Asked, AskedLabelled
from attnscope.prediction.learnable import learnable_labels, learnable_pairs, learnable_section
from attnscope.studies.predict import Toys
from attnscope.studies.predict.toys import CASES


@pytest.mark.parametrize("case", CASES)
def test_every_toy_is_told_as_it_is(case: str) -> None:
    said = Toys(texts=600).verdict(case)
    right = case.split(",")[0] in ("copying", "keyword")
    assert said == ("learnable" if right else "not learnable")


def test_the_page_on_pairs_says_so() -> None:
    study = Toys(texts=300)
    for case, start in (("copying", "Learnable:"), ("mixture", "Not learnable word by word")):
        data = study.data(case)
        assert isinstance(data, ParallelText)
        assert learnable_section(Asked(data)).sentences[0].startswith(start)


def test_pairs_put_together_at_random_are_not_learnable() -> None:
    data = Toys(texts=600).data("copying")
    assert isinstance(data, ParallelText)
    source, target = data.splits["train"]
    order = np.random.default_rng(0).permutation(len(target))
    mixed = ParallelText("mixed", ("in", "out"), {"train": (source, [target[i] for i in order])})
    assert learnable_pairs(mixed) == "not learnable"


def test_too_few_pairs_cannot_be_told() -> None:
    few = ParallelText("few", ("a", "b"), {"train": (["x y"] * 9, ["u v"] * 9)})
    assert learnable_pairs(few) == "cannot tell"
    assert "9 pairs are too few" in learnable_section(Asked(few)).sentences[0]
    single = ParallelText("single", ("a", "b"), {"train": (["x"] * 90, ["u"] * 90)})
    assert learnable_section(Asked(single)).sentences[0].startswith("Cannot tell: no source of two")
    assert learnable_pairs(single) == "cannot tell"


def test_the_verdict_on_xor_names_both_words(tmp_path: Path) -> None:
    data = Toys(texts=600).data("XOR, LSTM")
    assert isinstance(data, LabelledText)
    split = data.splits["train"]
    said = attnscope.predict(data).verdict
    assert said.startswith("Nothing to learn from single words")
    assert "'w3' and 'w4'" in said or "'w4' and 'w3'" in said
    assert "100.0% of the texts" in said
    mixed = np.random.default_rng(0).permutation(split.labels)
    noise = LabelledText("noise", data.classes, {"train": Split(split.texts, mixed)})
    assert learnable_labels(AskedLabelled(noise)) == "cannot tell"
