"""Shortcuts, parallel and running text as parts of a prediction."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText, Split
from attnscope.errors import AttnscopeError
from attnscope.prediction import predict
from attnscope.prediction.asked import AskedLabelled, AskedText
from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.prediction.running_text import induction_section, topics_section
from attnscope.prediction.shortcuts import shortcuts_section
from attnscope.prediction.translation import alignment_section
from attnscope.prediction.word_pairs import pairs_section


def reviews(count: int) -> LabelledText:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, count)
    words = ("film", "plot", "cast", "end", "scene", "voice", "idea")
    texts = [" ".join(random.choice(words, 8)) for _ in labels]
    texts = [
        f"{t} 9/10" if y and i % 3 == 0 else t
        for i, (t, y) in enumerate(zip(texts, labels, strict=True))
    ]
    return LabelledText(
        "mine",
        ("bad", "good"),
        {"train": Split(texts, labels), "test": Split(texts[:5], labels[:5])},
    )


def test_a_rating_is_named_with_its_share_and_how_to_go_on() -> None:
    made = shortcuts_section(AskedLabelled(reviews(900)))
    (row,) = made.tables[0].rows
    assert (row[0].split(" (")[0], *row[1:3]) == ("9/10", "rating", "good")
    assert "give" in made.sentences[0]
    assert made.again == ("attnscope predict mine --without 9/10",)
    assert any("5 of the 5 test texts" in said for said in made.sentences)
    gone = shortcuts_section(AskedLabelled(reviews(900), without=("9/10",)))
    assert gone.sentences[0] == "No shortcut was found."


def test_too_few_texts_cannot_tell() -> None:
    made = shortcuts_section(AskedLabelled(reviews(40)))
    assert made.sentences[0].startswith("Cannot tell: 40 texts are too few")


def reversed_pairs(count: int, seed: int = 0) -> ParallelText:
    random = np.random.default_rng(seed)
    rows = [random.permutation(20)[:6] for _ in range(count)]
    source = [" ".join(f"s{i}" for i in row) for row in rows]
    target = [" ".join(f"t{i}" for i in row[::-1]) for row in rows]
    return ParallelText("mine", ("aa", "bb"), {"train": (source, target)})


def test_words_are_aligned_and_the_diagonal_is_beside() -> None:
    asked = AskedParallel(reversed_pairs(400))
    made = alignment_section(asked)
    assert "100% of the source words" in made.sentences[0]
    assert "in the words, not in the order" in made.sentences[1]
    for text in made.shaded:
        # A target word looks at the source word of its number.
        assert text.words[int(text.weights.argmax())][1:] == text.note.split()[0][1:]
    (figure,) = made.figures
    values = figure.panels[0].marks[0].values
    assert values.shape == (6, 6)
    # Drawn from the bottom up, a reversed order runs along the rising diagonal.
    np.testing.assert_array_equal(values.argmax(axis=1), np.arange(6))
    pairs = pairs_section(asked)
    assert pairs is not None
    table = pairs.tables[0].rows
    assert {row[0][1:] == row[1][1:] for row in table} == {True}
    evidence = [row[3] for row in table if row[2] == "first"]
    assert evidence == sorted(evidence, reverse=True)
    assert "What this is based on" in pairs.sentences[2]


def test_too_few_pairs_cannot_tell_and_say_how_many_would() -> None:
    asked = AskedParallel(reversed_pairs(8))
    made = alignment_section(asked)
    assert made.sentences[0].startswith("Cannot tell: in 8 pairs of")
    needed = int(made.sentences[0].split("about ")[1].split(" pairs")[0].replace(",", ""))
    assert needed > 8
    assert pairs_section(asked) is None
    assert alignment_section(AskedParallel(reversed_pairs(4 * needed))).figures


def test_gold_links_are_scored_beside_chance_and_the_diagonal(tmp_path: Path) -> None:
    pairs = reversed_pairs(300)
    texts = [f"{x} ||| {y}" for x, y in zip(*pairs.splits["train"], strict=True)]
    (tmp_path / "texts").write_text("\n".join(texts[:40]) + "\n")
    links = " ".join(f"{i}-{5 - i}" for i in range(6))
    (tmp_path / "links").write_text(f"{links}\n" * 40)
    for gold, own in ((f"{tmp_path}/texts:{tmp_path}/links", True), (f"{tmp_path}/links", False)):
        said = predict(pairs, gold=gold)
        rows = {row[0]: row[1] for row in said.section("gold").tables[0].rows}
        assert rows["diagonal model with a prior"] == 0.0
        assert rows["diagonal alone"] == 100.0
        assert rows["chance"] == pytest.approx(100 * 5 / 6, abs=0.05)
        assert f"--gold {gold}" in said.command
        assert ("their texts were" in said.section("gold").sentences[2]) == own
    assert "Beside alignments by people" in said.write_report(tmp_path / "out").read_text()
    skipping = ParallelText("mine", ("aa", "bb"), pairs.splits, {"pair with an empty side": 2})
    with pytest.raises(AttnscopeError, match="of which 2 were left out"):
        predict(skipping, gold=f"{tmp_path}/links")
    with pytest.raises(AttnscopeError, match=r"--gold .* with 'mine': expected parallel text"):
        predict(reviews(50), gold="x")


def test_unequal_lines_are_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"2 sentences in aa and 1 in bb: expected as many"):
        ParallelText("mine", ("aa", "bb"), {"train": (["a", "b"], ["c"])})
    (tmp_path / "a.de").write_text("eins\nzwei\n")
    (tmp_path / "a.en").write_text("one\n")
    with pytest.raises(AttnscopeError, match=r"a\.de' has 2 lines and '.*a\.en' has 1"):
        predict(f"{tmp_path}/a.de:{tmp_path}/a.en")


def test_pairs_with_an_empty_side_are_counted() -> None:
    pairs = reversed_pairs(200)
    source, target = pairs.splits["train"]
    with_gap = ParallelText("m", ("a", "b"), {"train": ([*source, " "], [*target, "x"])})
    assert (
        "1 pairs with a side without words"
        in alignment_section(AskedParallel(with_gap)).sentences[-1]
    )


def test_repeated_pairs_are_counted_and_few_documents_have_no_topics() -> None:
    text = " ".join(f"w{i}" for i in range(50)) + " "
    asked = AskedText(DocumentSet("mine", {"train": [text * 3] * 4}))
    made = induction_section(asked)
    assert "100% of the time the same word follows" in made.sentences[0]
    assert "pays well" in made.sentences[0]
    assert len(made.tables[0].rows) == 4
    assert made.tables[1].rows[0][1:] == (8, pytest.approx(1000 * 8 / 596, abs=1e-3), 100.0)
    topics = topics_section(asked)
    assert topics is not None
    assert topics.sentences[0].startswith("Cannot tell: 4 documents are too few")


def test_the_law_is_given_for_a_batch_and_a_context_with_its_scatter() -> None:
    texts = DocumentSet("mine", {"train": ["a b c d"]})
    said = predict(texts, batch=16, context=128)
    made = said.section("induction")
    assert made.sentences[0].startswith("With 16 sequences of 128 tokens an update: an induction")
    assert "usually" in made.sentences[0]
    assert made.sentences[1].startswith("Cannot tell: in 4 words only 0 stand in a window of 128")
    (row,) = made.tables[0].rows
    assert row[:2] == (16, 128)
    assert said.command == "attnscope predict mine --batch 16 --context 128"
    assert "outside of the 500" in predict(texts, batch=1, context=8).verdict
    with pytest.raises(AttnscopeError, match="--batch 0: expected 1 to"):
        predict(texts, batch=0)
    with pytest.raises(AttnscopeError, match=r"--context 8 with 'mine': expected running text"):
        predict(reviews(50), context=8)
