from __future__ import annotations

import zipfile
from collections import Counter
from pathlib import Path

import pytest

from attnscope.datasets.readers.wikitext import BEFORE, read_wikitext
from attnscope.errors import AttnscopeError

ARTICLES = """\
 
 = Du Fu = 
 
 A poet <unk> . 
 The plots 
 = 1 rad / s and k = 
 1 . 
 
 = = Life = = 
 
 Long . 
 
 = Ise @-@ class = 
 
 Ships . 
 
"""
FIRST = "= Du Fu = \n \n A poet <unk> . \n The plots \n = 1 rad / s and k = \n 1 . \n \n"
EXPECTED = [FIRST + " = = Life = = \n \n Long .", "= Ise @-@ class = \n \n Ships ."]


def test_articles_begin_at_headings_that_stand_alone(tmp_path: Path) -> None:
    path = tmp_path / "wiki.valid.raw"
    path.write_text(ARTICLES, encoding="utf-8")
    skipped: Counter[str] = Counter()
    assert read_wikitext(path, skipped) == {"dev": EXPECTED}
    assert skipped == {}


def test_text_before_the_first_heading_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "wiki.train.tokens"
    path.write_text(f"stray\n{ARTICLES}", encoding="utf-8")
    skipped: Counter[str] = Counter()
    assert read_wikitext(path, skipped) == {"train": EXPECTED}
    assert skipped == {BEFORE: 1}


def test_a_zip_of_three_splits(tmp_path: Path) -> None:
    path = tmp_path / "wikitext-2-v1.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("test", "train", "valid"):
            archive.writestr(f"wikitext-2/wiki.{name}.tokens", ARTICLES)
    assert read_wikitext(path, Counter()) == dict.fromkeys(("test", "train", "dev"), EXPECTED)


def test_quoted_documents_whose_test_is_the_validation_text(tmp_path: Path) -> None:
    path = tmp_path / "wikitext-2-v1.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "wikitext-2/wiki.test.tokens", '" \n = A = \n "" B "" \n"\n" \n = C = \n"\n'
        )
        archive.writestr("wikitext-2/wiki.train.tokens", '" \n = D = \n"\n')
    read = read_wikitext(path, Counter())
    assert read == {"dev": ['= A = \n " B "', "= C ="], "train": ["= D ="]}


def test_quoted_documents_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "wiki.train.tokens"
    path.write_text('"a\nb"\n"c","d"\n', encoding="utf-8")
    with pytest.raises(AttnscopeError, match=r"tokens', line 3: there are 2 fields"):
        read_wikitext(path, Counter())


def test_a_name_that_does_not_say_the_split(tmp_path: Path) -> None:
    path = tmp_path / "text.raw"
    path.write_text(ARTICLES, encoding="utf-8")
    with pytest.raises(AttnscopeError, match="does not say which split it is"):
        read_wikitext(path, Counter())


def test_as_published(real_data: Path) -> None:
    folder = real_data / "wikitext2"
    if not (folder / "wiki.valid.raw.gz").exists():
        pytest.skip("WikiText-2 is not here: set ATTNSCOPE_DATA or `attnscope data get wikitext2`")
    skipped: Counter[str] = Counter()
    valid = read_wikitext(folder / "wiki.valid.raw.gz", skipped)["dev"]
    test = read_wikitext(folder / "wiki.test.raw.gz", skipped)["test"]
    quoted = read_wikitext(folder / "wikitext-2-v1.zip", skipped)
    # Merity et al. (2017), table 1: 60 articles each.
    assert (len(valid), len(test)) == (60, 60)
    assert {split: len(texts) for split, texts in quoted.items()} == {"dev": 47, "train": 615}
    # The quoted "test" file holds the validation text: as many words.
    words = [sum(len(text.split()) for text in texts) for texts in (valid, quoted["dev"])]
    assert words == [213886, 213886]
    assert skipped == {}
