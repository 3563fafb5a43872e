from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from attnscope.datasets.readers import table
from attnscope.datasets.readers.table import (
    NOT_DRAWN,
    Reading,
    read_pasted,
    read_tables,
    table_format,
)
from attnscope.datasets.text import BLANK
from attnscope.errors import AttnscopeError
from attnscope.limits import ROWS


def _write(path: Path, text: str) -> Path:
    pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(text.encode()))
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("A.TSV.gz", "tsv"), ("a.csv.xz", "csv"), ("a.txt", None), ("csv", None)],
)
def test_the_name_tells_the_format(name: str, kind: str | None) -> None:
    assert table_format(Path(name)) == kind


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'text,label\n"good, ""very""",pos\nbad,neg\n'),
        ("a.csv.gz", 'id,Class,x,SENTENCE\n1,pos,0,"good, ""very"""\n2,neg,0,bad\n'),
        ("a.csv.xz", 'pos,"good, ""very"""\nneg,bad\n'),
        ("a.tsv", 'label\ttext\npos\tgood, "very"\nneg\tbad\n'),
        ("a.tsv.gz", 'pos\tgood, "very"\r\nneg\tbad\r\n'),
    ],
)
def test_forms_of_the_same_table(tmp_path: Path, name: str, text: str) -> None:
    classes, splits = read_tables({"train": _write(tmp_path / name, text)})
    assert classes == ("neg", "pos")
    assert splits["train"].texts == ['good, "very"', "bad"]
    assert splits["train"].labels.tolist() == [1, 0]
    assert splits["train"].skipped == {}


def test_what_is_empty_is_counted(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.csv", "text,label\none,a\n\n,a\n  ,b\ntwo,b\n\n\n")
    _, splits = read_tables({"train": path})
    assert splits["train"].texts == ["one", "two"]
    assert splits["train"].skipped == {BLANK: 1, "empty text, the first in line 4": 2}


def test_whole_numbers_are_ordered_as_numbers(tmp_path: Path) -> None:
    path = _write(tmp_path / "a.tsv", "10\tten\n9\tnine\n-1\tminus\n")
    assert read_tables({"train": path})[0] == ("-1", "9", "10")


def test_the_training_table_gives_the_classes(tmp_path: Path) -> None:
    train = _write(tmp_path / "train.csv", "a,one\nb,two\n")
    test = _write(tmp_path / "test.csv", "b,three\n\nc,four\n")
    with pytest.raises(
        AttnscopeError, match=r"test\.csv', line 3: the label 'c' is not in the set.*'a', 'b'"
    ):
        read_tables({"train": train, "test": test})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,label\nx\n", "line 2: there are 1 columns where 2 were expected. The header"),
        ("a,b,c\n", "line 1: there are 3 columns where 2 were expected. Expected a header"),
        ("text,label\nx,\n", "line 2: the label is empty"),
        ('label,text\nx,a\n"y,b\n', "line 3: the record that begins here is not CSV"),
        ("", "holds no text with a label"),
        ("label,text\n", "holds no text with a label"),
        (
            "good one,pos\nso,neg\nso,neg\nbad,neg\n",
            "line 1: .* 3 different labels and 2 different",
        ),
        ("score,phrase\n1,a\n1,b\n0,c\n0,d\n", "line 1: 'score' is the label of this row alone"),
    ],
)
def test_tables_of_another_form(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(AttnscopeError, match=message):
        read_tables({"train": _write(tmp_path / "a.csv", text)})


def test_a_field_may_be_longer_than_what_csv_allows_by_default(tmp_path: Path) -> None:
    text = "word " * 100_000
    path = _write(tmp_path / "a.csv", f'label,text\na,"{text}"\nb,short\n')
    assert len(read_tables({"train": path})[1]["train"].texts[0]) == len(text.strip())


def test_a_pasted_table_is_read_as_a_file_is(tmp_path: Path) -> None:
    for text, name in (
        ('label,text\na,"one, two"\nb,three\n\na,four', "t.csv"),
        ("text\tlabel\none, two\ta\nthree\tb", "t.tsv"),
        ("a,one\nb,two\na,three\n", "t.csv"),
    ):
        classes, splits = read_pasted(text)
        other, from_file = read_tables({"train": _write(tmp_path / name, text)})
        assert (classes, splits["train"].texts) == (other, from_file["train"].texts)
        assert splits["train"].skipped == from_file["train"].skipped
        np.testing.assert_array_equal(splits["train"].labels, from_file["train"].labels)
    with pytest.raises(AttnscopeError, match="'the pasted table', line 2: there are 3 columns"):
        read_pasted("label,text\na,b,c\n")
    with pytest.raises(AttnscopeError, match=r"'the pasted table', line 1: .* NUL"):
        read_pasted("label,te\0xt\na,b\n")
    assert read_pasted("a,half a letter \ud800\nb,x\n")[0] == ("a", "b")


def test_a_sampled_table_may_be_longer_than_what_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path / "a.csv", "label,text\n" + "a,x\nb,y\n" * 30)
    monkeypatch.setitem(vars(ROWS), "default", 10)
    with pytest.raises(AttnscopeError, match="has more than 10 rows"):
        read_tables({"train": path})
    _, splits = read_tables({"train": path}, Reading(most=8))
    assert len(splits["train"]) == 8
    assert splits["train"].skipped == {NOT_DRAWN: 52}


def test_labels_without_end_are_refused_before_memory_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_LABELS", 20)
    rows = "".join(f"{i / 7:.4f},text {i}\n" for i in range(100))
    path = _write(tmp_path / "a.csv", "label,text\n" + rows)
    said = r"line 22: .* more than 20 .* '2\.8571' .* 'text 20'"
    with pytest.raises(AttnscopeError, match=said):
        read_tables({"train": path}, Reading(most=8))
