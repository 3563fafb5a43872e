from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pytest

from attnscope.datasets.readers.alignments import read_alignments
from attnscope.datasets.readers.glove import read_glove
from attnscope.errors import AttnscopeError


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_links_count_from_zero(tmp_path: Path) -> None:
    pairs = _write(tmp_path / "a.de-en", "Das ist so ||| That is so\nJa ||| Oh yes\n")
    links = _write(tmp_path / "a.talp", "1-1 3p2 2-2 \n\n")
    found = read_alignments(pairs, links)
    assert found.source == [["Das", "ist", "so"], ["Ja"]]
    assert found.target == [["That", "is", "so"], ["Oh", "yes"]]
    assert found.sure == [{(0, 0), (1, 1)}, set()]
    assert found.possible == [{(2, 1)}, set()]


@pytest.mark.parametrize(
    ("pairs", "links", "message"),
    [
        ("a ||| b\n", "1-2\n", r"talp', line 1: the link '1-2' leaves the pair"),
        ("a ||| b\n", "0-1\n", r"talp', line 1: the link '0-1' leaves the pair"),
        ("a ||| b\n", "1x1\n", r"talp', line 1: '1x1' is no link"),
        ("a ||| b\nc d\n", "1-1\n1-1\n", r"de-en', line 2: expected 'source \|\|\| target'"),
        ("a |||\n", "1-1\n", r"de-en', line 1: expected 'source \|\|\| target'"),
        ("a ||| b\n", "1-1\n1-1\n", r"has 1 lines and '.*' has 2"),
    ],
)
def test_alignments_of_another_form(tmp_path: Path, pairs: str, links: str, message: str) -> None:
    paths = _write(tmp_path / "a.de-en", pairs), _write(tmp_path / "a.talp", links)
    with pytest.raises(AttnscopeError, match=message):
        read_alignments(*paths)


def test_alignments_as_published(real_data: Path) -> None:
    folder = real_data / "word_alignment" / "crossalign"
    if not folder.is_dir():
        pytest.skip("the gold alignments are not here: set ATTNSCOPE_DATA to a folder with them")
    found = read_alignments(folder / "test.de-en", folder / "deen.talp")
    assert len(found.source) == len(found.target) == 508
    assert sum(map(len, found.sure)) == 9613
    assert sum(map(len, found.possible)) == 921


VECTORS = "the 0.5 -1 2\nof 1 2 3\n. . . 4 5 6\nthe 9 9 9\nend 7 8 9\n"


def test_vectors_of_the_words_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt.xz"
    path.write_bytes(lzma.compress(VECTORS.encode()))
    found = read_glove(path, ["end", "unheard", "the", ". . .", "end"])
    assert found.words == ("end", "the", ". . .")
    assert found.missing == ("unheard",)
    assert found.vectors.dtype == np.float32
    assert found.vectors.tolist() == [[7, 8, 9], [0.5, -1, 2], [4, 5, 6]]


def test_reading_stops_when_all_is_found(tmp_path: Path) -> None:
    path = _write(tmp_path / "a", VECTORS + "broken line\n")
    assert read_glove(path, ["of"]).missing == ()
    with pytest.raises(AttnscopeError, match="line 6: there are 1 numbers"):
        read_glove(path, ["of", "unheard"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("400000 50\nthe 1 2\n", r"line 1: found '400000 50'. Expected 'word v1 \.\.\. vd'"),
        ("the 1 2\nof 1 two\n", "line 2: not a vector .*two"),
        ("the 1 2\nof 1 nan\n", "line 2: the vector has a number that is not finite"),
        ("an 1 2\n", "has none of the 2 words asked for"),
        ("", "has none of the 2 words asked for"),
    ],
)
def test_vectors_of_another_form(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(AttnscopeError, match=message):
        read_glove(_write(tmp_path / "a", text), ["the", "of"])


def test_glove_as_published(real_data: Path) -> None:
    path = real_data / "glove" / "glove.6B.50d.subset.txt.xz"
    if not path.exists():
        pytest.skip("GloVe is not here: https://nlp.stanford.edu/projects/glove has glove.6B.zip")
    found = read_glove(path, ["the", ","])
    assert found.vectors.shape == (2, 50)
    assert found.vectors[0, 0] == np.float32(0.418)
