"""From a table to a prediction, and what is said of every kind of bad input."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import attnscope
from attnscope.errors import AttnscopeError
from attnscope.prediction import Prediction, predict


def table(
    path: Path, rows: list[tuple[str, str]], header: tuple[str, str] = ("label", "text")
) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return str(path)


def keyword_rows(count: int = 400, seed: int = 0, share: float = 1.0) -> list[tuple[str, str]]:
    dice = np.random.default_rng(seed)
    rows = []
    for label in dice.integers(0, 2, count):
        words = [f"w{i}" for i in dice.integers(0, 60, 8)]
        if dice.random() < share:
            words.insert(int(dice.integers(0, 8)), ("awful", "superb")[label])
        rows.append((("bad", "good")[label], " ".join(words)))
    return rows


def said(prediction: Prediction) -> str:
    return "\n".join(line for part in prediction.sections for line in part.sentences)


def test_the_words_that_decide_come_first_with_how_sure(tmp_path: Path) -> None:
    found = attnscope.predict(table(tmp_path / "mine.csv", keyword_rows()))
    assert found.verdict.startswith("Single words suffice")
    rows = found.section("words").tables[0].rows
    assert {rows[0][0], rows[1][0]} == {"awful", "superb"}
    assert rows[0][3] == 100.0
    assert rows[0][-1] == "yes"
    shaded = found.attention("A superb film, w1!")
    assert shaded.words[int(shaded.weights.argmax())] == "superb"
    page = found.write_report(tmp_path / "report").read_text()
    assert "Single words suffice" in page
    assert "attnscope predict" in page


def test_without_a_word_it_is_predicted_again(tmp_path: Path) -> None:
    data = table(tmp_path / "mine.csv", keyword_rows())
    found = predict(data, without=["Superb", "awful"])
    assert "'superb' (" in said(found)
    assert "superb" not in {row[0] for row in found.section("words").tables[0].rows}
    assert found.verdict.startswith("Cannot tell")
    assert "--without superb awful" in found.command
    with pytest.raises(AttnscopeError, match="--without zebra: no text of"):
        predict(data, without=["zebra"])


def test_labels_at_random_are_not_told(tmp_path: Path) -> None:
    found = predict(table(tmp_path / "mine.csv", keyword_rows(share=0.0)))
    assert found.verdict.startswith("Cannot tell: none of the 60 words stands out")
    assert "texts of this kind would be" in found.verdict


def test_xor_is_nothing_to_learn_from_single_words(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    rows = []
    for label in dice.integers(0, 2, 800):
        one = int(dice.integers(0, 2))
        sign = ["a", "b"][one] + " " + ["c", "d"][one ^ int(label)]
        # A word that is sure, and in few texts: words carry something, and a bag gains nothing.
        rows.append((str(label), sign + (" rare" if label and dice.random() < 0.05 else "")))
    verdict = predict(table(tmp_path / "xor.csv", rows)).verdict
    assert verdict.startswith(("Nothing to learn from single words", "Cannot tell"))


def test_classes_may_be_chosen_and_are_checked(tmp_path: Path) -> None:
    rows = [*keyword_rows(), *[("other", f"w{i % 9} thing thing") for i in range(50)]]
    data = table(tmp_path / "mine.csv", rows)
    assert len(predict(data).section("classes").tables[0].rows) == 3
    two = predict(data, classes=["good", "bad"])
    assert [row[0] for row in two.section("classes").tables[0].rows] == ["bad", "good"]
    with pytest.raises(AttnscopeError, match="expected two or more of bad, good, other"):
        predict(data, classes=["good", "goood"])


def test_contradicting_duplicates_are_counted_and_quoted(tmp_path: Path) -> None:
    rows = [*keyword_rows(), ("good", "the same superb text"), ("bad", "The same  superb text")]
    text = said(predict(table(tmp_path / "mine.csv", rows)))
    assert "1 training texts repeat an earlier one" in text
    assert "1 texts occur with labels that contradict each other" in text
    assert "'The same  superb text'" in text


def test_empty_texts_and_rows_that_are_not_drawn_are_said(tmp_path: Path) -> None:
    rows = [*keyword_rows(), ("good", "   ")]
    text = said(predict(table(tmp_path / "mine.csv", rows), most=300))
    assert "1 rows of train were left out: empty text" in text
    assert "100 rows of train were left out: not among those drawn at random" in text
    assert "300 training texts" in text


def test_a_script_without_spaces_is_counted_letter_by_letter_and_said(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    rows = [
        (label, "".join(dice.choice(list("天地人山水火"), 6)) + ("好" if label == "1" else "坏"))
        for label in map(str, dice.integers(0, 2, 200))
    ]
    found = predict(table(tmp_path / "mine.csv", rows))
    assert {found.section("words").tables[0].rows[i][0] for i in (0, 1)} == {"好", "坏"}
    assert "200 texts are in a script without spaces" in said(found)


def test_many_classes_are_told_and_numbers_are_refused(tmp_path: Path) -> None:
    rows = [(f"c{i % 300}", f"word{i % 300} thing") for i in range(1500)]
    text = said(predict(table(tmp_path / "many.csv", rows)))
    assert "300 classes are many" in text
    assert "has 5 texts: nothing can be said of it" in text
    numbers = [(f"{i / 7:.3f}", f"text {i}") for i in range(100)]
    with pytest.raises(AttnscopeError, match=r"such as 0\.000 for the text 'text 0'"):
        predict(table(tmp_path / "numbers.csv", numbers))


def test_one_class_and_no_label_column_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="have the label 'x': expected two classes"):
        predict(table(tmp_path / "one.csv", [("x", "a b"), ("x", "c d")]))
    path = table(tmp_path / "id.csv", [("1", "a b"), ("2", "c d")], ("id", "text"))
    with pytest.raises(AttnscopeError, match="names no label column: expected one of label"):
        predict(path)
    named = table(tmp_path / "named.csv", keyword_rows(), ("verdict", "body"))
    assert predict(named, label="verdict", text="Body").verdict.startswith("Single words")
    with pytest.raises(AttnscopeError, match=r"no column 'sentiment' \(--label\): expected one of"):
        predict(named, label="sentiment", text="body")


def test_too_little_to_count_is_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="cannot tell: no word occurs 3 times in the 2 texts"):
        predict(table(tmp_path / "two.csv", [("1", "a b"), ("0", "c d")]))
    with pytest.raises(AttnscopeError, match="most = 0"):
        predict(table(tmp_path / "two.csv", [("1", "a b"), ("0", "c d")]), most=0)


def test_mixed_encodings_quote_the_line(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_bytes("label,text\n1,schön\n".encode() + b"0,sch\xf6n\n")
    with pytest.raises(AttnscopeError, match=r"line 3: byte 0xf6 .* the file mixes encodings"):
        predict(path)


def test_progress_is_told(tmp_path: Path) -> None:
    heard: list[str] = []
    predict(table(tmp_path / "mine.csv", keyword_rows()), tell=lambda what, *_: heard.append(what))
    assert {"counting words", "weighing words"} <= set(heard)


def test_a_label_for_each_text_is_no_class(tmp_path: Path) -> None:
    """A table without a header had its row numbers taken for 301 classes."""
    rows = [f"{i},one two three w{i}" for i in range(40)]
    path = tmp_path / "numbered.csv"
    path.write_text("\n".join(["x,y", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(attnscope.AttnscopeError, match="41 different labels for 41 texts"):
        attnscope.predict(str(path))
