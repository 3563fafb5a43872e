import numpy as np
import pytest

from attnscope.datasets import labelled
from attnscope.datasets.kinds import LabelledText, Split
from attnscope.errors import AttnscopeError
from attnscope.tasks.word_sequences import RULES, UNKNOWN, Rule, word_sequences


def split(*rows):
    texts, labels = zip(*rows, strict=True)
    return Split(list(texts), np.array(labels, dtype=np.int64))


def text(classes=("bad", "good"), name="mine", **splits):
    return LabelledText(name, classes, splits)


ROWS = (
    ("a fine film", 1),
    ("a fine day", 1),
    ("a fine , fine thing", 1),
    ("a dull film", 0),
    ("dull , dull film", 0),
    ("a dull day", 0),
)


def words(sequences, ids):
    return [sequences.words[i] for i in ids]


def test_rare_words_are_unknown_and_marks_stand_around():
    made = word_sequences(text(train=split(*ROWS), dev=split(("a dull unheard film", 0), ROWS[0])))
    assert made.words[:4] == ("<pad>", "<bos>", "<eos>", "<unk>")
    # "day", "," and "thing" occur fewer than three times in the training texts.
    assert set(made.words[4:]) == {"a", "fine", "film", "dull"}
    assert words(made, made.dev.ids[0]) == ["<bos>", "a", "dull", "<unk>", "film", "<eos>"]
    assert made.unknown == pytest.approx(1 / 7)
    assert list(made.dev.labels) == [0, 1]


def test_only_training_texts_make_the_vocabulary():
    dev = split(*[("new new new", 0)] * 3, ("a film", 1))
    made = word_sequences(text(train=split(*ROWS), dev=dev))
    assert "new" not in made.words


def test_a_batch_is_filled_up_and_masked():
    made = word_sequences(text(train=split(*ROWS), dev=split(*ROWS)))
    batch = made.train.batch([0, 2])
    assert batch.source.shape == (2, 7)
    assert batch.mask.sum(dim=1).tolist() == [5, 7]
    assert batch.source[0, 5:].tolist() == [0, 0]
    assert batch.label.tolist() == [1.0, 1.0]
    assert made.train.batch([0, 1]).mask is None


def test_some_texts_and_their_sides():
    train = word_sequences(text(train=split(*ROWS), dev=split(*ROWS))).train
    some = train.rows([3, 0])
    words, labels = some.sides
    assert [row.tolist() for row in words] == [train.ids[3].tolist(), train.ids[0].tolist()]
    assert [row.tolist() for row in labels] == [[0], [1]]


def test_facts_say_what_was_read():
    facts = word_sequences(text(train=split(*ROWS), dev=split(*ROWS)), limit=3).facts
    assert (facts["training texts"], facts["validation texts"]) == (6, 6)
    assert facts["validation texts are"] == "the dev split"
    assert facts["cut to the limit"] == 4
    assert facts["median length in training"] == 5.0


def test_long_texts_are_cut_and_counted():
    made = word_sequences(text(train=split(*ROWS), dev=split(*ROWS)), limit=3)
    assert made.truncated == {"train": 2, "dev": 2}
    assert made.train.lengths.max() == 5


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ({"dev": split(*ROWS), "test": split(*ROWS[:1], *ROWS[-1:])}, "the dev split"),
        ({"test": split(*ROWS)}, "the test split"),
    ],
)
def test_validation_is_dev_or_test(splits, said):
    made = word_sequences(text(train=split(*ROWS), **splits))
    assert made.dev_from == said
    assert len(made.dev) == 6


def test_a_tenth_of_training_is_set_apart_where_there_is_neither():
    rows = [(f"a fine film dull {i}", i % 2) for i in range(200)]
    made = word_sequences(text(train=split(*rows)))
    assert (len(made.train), len(made.dev)) == (180, 20)
    assert "tenth of the training texts" in made.dev_from


def test_no_more_than_asked_for_are_validated_on():
    rows = [(f"a fine film dull {i}", i % 2) for i in range(200)]
    one, other = (
        word_sequences(text(train=split(*ROWS), test=split(*rows)), most=50) for _ in range(2)
    )
    assert len(one.dev) == 50
    assert one.dev_from == "50 of the test split, drawn at random"
    assert np.array_equal(one.dev.labels, other.dev.labels)


def test_the_first_validation_texts_are_of_both_classes_though_a_file_is_sorted():
    rows = [(f"a fine film dull {i}", int(i >= 100)) for i in range(200)]
    made = word_sequences(text(train=split(*ROWS), dev=split(*rows)))
    assert 5 < made.dev.rows(range(20)).labels.sum() < 15


def test_a_set_of_the_paper_is_validated_on_its_test_texts():
    splits = {"train": split(*ROWS), "dev": split(*ROWS), "test": split(*ROWS[:1], *ROWS[-1:])}
    made = word_sequences(text(name="sst2", **splits))
    assert (made.dev_from, len(made.dev)) == ("the test split", 2)


def test_two_of_several_classes_are_told_apart():
    classes = ("World", "Sports", "Business", "Sci/Tech")
    rows = split(*[(f"{name} news 11 for all", i) for i, name in enumerate(classes)] * 3)
    made = word_sequences(text(classes, "ag_news", train=rows, dev=rows))
    assert made.classes == ("World", "Business")
    assert (len(made.train), made.train.labels.tolist()) == (6, [0, 1] * 3)
    assert UNKNOWN in made.train.ids[0]  # the number 11
    other = word_sequences(
        text(classes, "ag_news", train=rows, dev=rows), classes=("Sci/Tech", "Sports")
    )
    assert sorted(other.train.labels) == [0, 0, 0, 1, 1, 1]
    assert other.classes == ("Sci/Tech", "Sports")


def test_the_rules_of_the_paper():
    assert RULES["newsgroups"].classes == ("rec.sport.baseball", "rec.sport.hockey")
    assert RULES["newsgroups"].words("a_b 12 3") == ["a", "b", "<unk>", "3"]
    assert Rule(spaced=True).words("It 's -lrb- n't") == ["it", "'s", "-lrb-", "n't"]
    rows = split((" ".join(["fine"] * 400), 1), *ROWS)
    made = word_sequences(text(name="amazon", train=rows, dev=split(*ROWS)))
    assert made.left_out == {"400 words or more": 1}
    assert len(made.train) == 6


@pytest.mark.parametrize(
    ("made", "options", "sentence"),
    [
        (lambda: text(train=split(*ROWS), dev=split(*ROWS[:3])), {}, "dev texts .* class 'bad'"),
        (
            lambda: text(("a", "b", "c"), train=split(("x", 0), ("y", 2))),
            {},
            r"has 3 classes \(a, b, c\): expected the names of the two.*--classes 'a' 'b'",
        ),
        (
            lambda: text(train=split(*ROWS), dev=split(*ROWS)),
            {"classes": ("bad", "ugly")},
            "expected two of bad, good",
        ),
        (lambda: text(train=split(*ROWS)), {"limit": 0}, "limit = 0"),
        (lambda: text(train=split(*ROWS)), {"most": 0}, "most = 0"),
        (
            lambda: text(train=split(("x y", 0), ("z", 1)), dev=split(*ROWS)),
            {},
            "no word occurs 3 times",
        ),
    ],
    ids=["one class", "three classes", "unknown class", "limit", "most", "rare"],
)
def test_bad_input_is_a_sentence(made, options, sentence):
    with pytest.raises(AttnscopeError, match=sentence):
        word_sequences(made(), **options)


def test_a_class_with_one_example_is_told_by_its_count():
    rows = [(f"a fine film {i}", 1) for i in range(40)] + [("a dull film", 0)]
    with pytest.raises(AttnscopeError, match="has 1 text of the class 'bad', and none was left"):
        word_sequences(text(train=split(*rows)))


def test_the_sentences_of_sst(real_sst2):
    made = word_sequences(labelled("sst2", data_dir=real_sst2))
    assert (len(made.train), len(made.dev), made.dev_from) == (6920, 1821, "the test split")
    assert len(made.words) == 4821
    assert np.median(made.train.lengths) == 21
    assert made.unknown == pytest.approx(0.1224, abs=1e-4)
    assert made.truncated == {"train": 0, "dev": 0}
