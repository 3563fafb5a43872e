"""BLEU against its formula, by hand."""

from __future__ import annotations

import builtins
import math
from typing import Any

import pytest

from attnscope.errors import AttnscopeError
from attnscope.probes.lexicon.bleu import corpus_bleu


def test_the_formula_by_hand() -> None:
    # Seven words, one of them wrong: 6/7, 4/6, 2/5 and none of the n-grams are right; the reference
    # is one word longer.
    found = corpus_bleu(["a man rides his red bike home"], ["a man rides the red bike home now"])
    precision = (6 / 7) * (4 / 6) * (2 / 5)
    # No 4-gram is right: the first such precision counts as half an n-gram.
    by_hand = 100 * math.exp(1 - 8 / 7) * (precision * (1 / 2) / 4) ** (1 / 4)
    assert found == pytest.approx(by_hand, rel=1e-9)


def test_it_is_of_the_corpus_not_a_mean_of_sentences() -> None:
    texts = ["one two three four five", "six seven eight nine ten"]
    assert corpus_bleu(texts, texts) == 100.0
    half = corpus_bleu([texts[0], "x x x x x"], texts)
    precision = (5 / 10) * (4 / 8) * (3 / 6) * (2 / 4)
    assert half == pytest.approx(100 * precision ** (1 / 4), rel=1e-9)


def test_punctuation_is_split_off_and_text_that_looks_tokenised_does_not_warn() -> None:
    assert corpus_bleu(["a red bike , old ."] * 200, ["a red bike, old."] * 200) == 100.0


@pytest.mark.parametrize(("ours", "theirs"), [(["a"], ["a", "b"]), ([], [])])
def test_not_as_many(ours: list[str], theirs: list[str]) -> None:
    with pytest.raises(
        AttnscopeError,
        match=f"there are {len(ours)} translations and {len(theirs)} references: expected as many",
    ):
        corpus_bleu(ours, theirs)


def test_without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "sacrebleu":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(AttnscopeError, match=r"`pip install attnscope\[text\]` brings it"):
        corpus_bleu(["a"], ["a"])
