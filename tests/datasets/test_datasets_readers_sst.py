from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.datasets.readers.sst_trees import NEUTRAL, read_trees
from attnscope.datasets.readers.stsa import read_stsa
from attnscope.datasets.text import BLANK
from attnscope.errors import AttnscopeError

TREES = """\
(3 (2 It) (4 (3 shines) (2 .)))
(2 (2 So) (2 so))

(0 (1 -LRB-) (0 bad))
"""


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_stsa(tmp_path: Path) -> None:
    split = read_stsa(_write(tmp_path / "a", "1 a fine film .\n\n0 dull\n1\n\n"), 2)
    assert split.texts == ["a fine film .", "dull"]
    assert split.labels.tolist() == [1, 0]
    assert split.skipped == {BLANK: 1, "empty text": 1}


def test_stsa_label_outside_the_set(tmp_path: Path) -> None:
    path = _write(tmp_path / "a", "1 good\n2 so so\n")
    with pytest.raises(AttnscopeError, match=r"a', line 2: the label '2'.*'0', '1'"):
        read_stsa(path, 2)
    assert read_stsa(path, 5).labels.tolist() == [1, 2]


def test_sentences_of_trees(tmp_path: Path) -> None:
    split = read_trees(_write(tmp_path / "a", TREES))
    assert split.texts == ["It shines .", "So so", "-LRB- bad"]
    assert split.labels.tolist() == [3, 2, 0]
    assert split.skipped == {BLANK: 1}


def test_two_classes_leave_the_neutral_out(tmp_path: Path) -> None:
    split = read_trees(_write(tmp_path / "a", TREES), classes=2)
    assert split.texts == ["It shines .", "-LRB- bad"]
    assert split.labels.tolist() == [1, 0]
    assert split.skipped == {BLANK: 1, NEUTRAL: 1}


def test_phrases_come_children_first(tmp_path: Path) -> None:
    split = read_trees(_write(tmp_path / "a", TREES.splitlines()[0]), phrases=True)
    assert split.texts == ["It", "shines", ".", "shines .", "It shines ."]
    assert split.labels.tolist() == [2, 3, 2, 4, 3]


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("(3 (2 It) (4 on", "2 brackets are not closed"),
        ("(3 (2 It)) (2 on)", "expected one tree"),
        ("word", "expected one tree"),
        ("(2 a))", "expected one tree"),
        ("()", "expected one tree"),
        ("(", "expected one tree"),
        ("(7 word)", "the label '7' is not in the set"),
    ],
)
def test_what_is_no_tree(tmp_path: Path, tree: str, message: str) -> None:
    path = _write(tmp_path / "a", f"(2 fine)\n{tree}\n")
    with pytest.raises(AttnscopeError, match=f"a', line 2: {message}"):
        read_trees(path)


@pytest.mark.parametrize("classes", [2, 5])
def test_a_label_is_checked_for_any_number_of_classes(tmp_path: Path, classes: int) -> None:
    with pytest.raises(AttnscopeError, match="the label 'x'"):
        read_trees(_write(tmp_path / "a", "(x word)"), classes=classes)


def test_trees_as_published(real_data: Path) -> None:
    folder = real_data / "sst"
    if not folder.is_dir():
        pytest.skip("SST is not here: run `attnscope data get sst5`")
    counts = {"train": (8544, 318582), "dev": (1101, 41447), "test": (2210, 82600)}
    binary = {"train": 6920, "dev": 872, "test": 1821}
    for split, (sentences, nodes) in counts.items():
        path = folder / "trees" / f"{split}.txt.gz"
        if not path.exists():
            pytest.skip("the SST trees are not here: https://nlp.stanford.edu/sentiment has them")
        roots = read_trees(path)
        assert (len(roots), len(read_trees(path, phrases=True))) == (sentences, nodes)
        assert len(read_trees(path, classes=2)) == binary[split]
        fine = read_stsa(folder / "stsa" / f"stsa.fine.{split}.gz", 5)
        assert sorted(roots.labels.tolist()) == sorted(fine.labels.tolist())
