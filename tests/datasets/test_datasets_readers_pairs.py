from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from attnscope.datasets.readers.pairs import BOTH_EMPTY, ONE_EMPTY, read_aligned, read_tabbed
from attnscope.datasets.text import BLANK
from attnscope.errors import AttnscopeError


def _files(folder: Path, source: str, target: str) -> tuple[Path, Path]:
    paths = folder / "a.de", folder / "a.en"
    for path, text in zip(paths, (source, target), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def test_lines_stay_aligned_when_pairs_are_left_out(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    paths = _files(tmp_path, "eins\n\ndrei\n\nfünf\n\n", "one\ntwo\n \n\nfive\n\n")
    assert read_aligned(*paths, skipped) == (["eins", "fünf"], ["one", "five"])
    assert skipped == {ONE_EMPTY: 2, BOTH_EMPTY: 1}


def test_an_empty_translation_at_the_end_is_a_pair(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    paths = _files(tmp_path, "eins\nzwei\n", "one\n\n")
    assert read_aligned(*paths, skipped) == (["eins"], ["one"])
    assert skipped == {ONE_EMPTY: 1}


def test_blank_lines_at_the_end_of_one_file_do_not_count(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    paths = _files(tmp_path, "eins\n", "one\n\n\n")
    assert read_aligned(*paths, skipped) == (["eins"], ["one"])
    assert skipped == {}


@pytest.mark.parametrize(("source", "target"), [("a\nb\nc\n", "a\n"), ("a\n", "a\nb\nc\n")])
def test_files_of_different_length(tmp_path: Path, source: str, target: str) -> None:
    counts = [text.count("\n") for text in (source, target)]
    paths = _files(tmp_path, source, target)
    with pytest.raises(
        AttnscopeError, match=rf"a\.de' has {counts[0]} lines and '.*a\.en' has {counts[1]}: "
    ):
        read_aligned(*paths, Counter())


def test_byte_pairs_are_joined(tmp_path: Path) -> None:
    paths = _files(tmp_path, "ka@@ p bre@@ ton\n", "ca@@ pe@@\n")
    assert read_aligned(*paths, Counter(), bpe=True) == (["kap breton"], ["cape"])
    assert read_aligned(*paths, Counter())[0] == ["ka@@ p bre@@ ton"]


def test_tabbed(tmp_path: Path) -> None:
    skipped: Counter[str] = Counter()
    path = tmp_path / "a.tsv"
    path.write_text('a "quote\tein "Zitat\n\nonly\t\n\t\nb@@ c\td\n\n', encoding="utf-8")
    assert read_tabbed(path, skipped, bpe=True) == (['a "quote', "bc"], ['ein "Zitat', "d"])
    assert skipped == {BLANK: 1, ONE_EMPTY: 1, BOTH_EMPTY: 1}


@pytest.mark.parametrize(("row", "tabs"), [("no tab", 0), ("a\tb\tc", 2)])
def test_tabbed_of_another_form(tmp_path: Path, row: str, tabs: int) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"a\tb\n{row}\n", encoding="utf-8")
    with pytest.raises(AttnscopeError, match=rf"a\.tsv', line 2: there are {tabs} tabs"):
        read_tabbed(path, Counter())


def test_the_sample_of_both_languages_as_published(real_data: Path) -> None:
    path = real_data / "iwslt14_de_en" / "train_sample4200.bpe10k.de+en.gz"
    if not path.exists():
        pytest.skip("IWSLT'14 is not here: `attnscope data iwslt14` says how to get it")
    skipped: Counter[str] = Counter()
    source, target = read_tabbed(path, skipped, bpe=True)
    assert (len(source), len(target), skipped) == (4200, 4200, {})
    assert not any("@@" in text for text in (*source, *target))
