"""Gold alignments: every format, what words are counted from, and files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnscope.datasets.readers.gold_links import NAACL, PHARAOH, read_gold
from attnscope.errors import AttnscopeError

TEXTS = "das haus ||| the house\nein gutes buch ||| a good book\n"
SURE = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (2, 2)})]
POSSIBLE = [frozenset(), frozenset({(1, 2)})]
FORMS = {
    "from 0": ("0-0 1-1\n0-0 1?2 2-2\n", PHARAOH, 0),
    "from 1": ("1-1 2-2\n3-3 2p3 1-1\n", PHARAOH, 1),
    "naacl": ("1 1 1\n1 2 2 S\n2 1 1 S 1.0\n2 3 3\n2 2 3 P\n2 0 3\n", NAACL, 1),
}


def files(folder: Path, links: str, texts: str = TEXTS) -> str:
    one, other = folder / "texts", folder / "links"
    one.write_text(texts)
    other.write_text(links)
    return f"{one}:{other}"


@pytest.mark.parametrize("name", FORMS)
def test_every_form_says_the_same(tmp_path: Path, name: str) -> None:
    links, form, base = FORMS[name]
    found = read_gold(files(tmp_path, links))
    assert (found.form, found.base, found.own_text) == (form, base, True)
    assert found.alignments.sure == SURE
    assert found.alignments.possible == POSSIBLE
    assert found.alignments.target[1] == ["a", "good", "book"]


def test_three_files_and_lines_of_the_corpus(tmp_path: Path) -> None:
    corpus = (["das haus", "ein gutes buch", "mehr"], ["the house", "a good book", "more"])
    for name, side in zip(("s", "t"), corpus, strict=True):
        (tmp_path / name).write_text("\n".join(side[:2]) + "\n")
    (tmp_path / "l").write_text(FORMS["from 0"][0])
    three = read_gold(f"{tmp_path / 's'}:{tmp_path / 't'}:{tmp_path / 'l'}")
    alone = read_gold(str(tmp_path / "l"), corpus)
    assert three.alignments.sure == alone.alignments.sure == SURE
    assert alone.alignments.source == [["das", "haus"], ["ein", "gutes", "buch"]]
    assert three.own_text
    assert not alone.own_text
    with pytest.raises(AttnscopeError, match="expected texts as well, as TEXTS:LINKS"):
        read_gold(str(tmp_path / "l"))


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("0-0 1-1\n", r"has links of 1 pairs, and there are 2"),
        ("0-0\n1-1\n2-2\n", r"has links of 3 pairs, and there are 2"),
        ("0-0 eins\n\n", r"line 1: 'eins' is no link\. Expected 'i-j'"),
        ("0-0\n5-1\n", r"line 2: the link of words 5 and 1 leaves the pair.*ein gutes buch"),
        ("0-0\n3-3\n", "counts words from 0 in line 1 and has the number of words"),
        ("\n\n", "holds no sure link"),
        ("1 1 1 X\n", r"'1 1 1 X' is no link\. Expected 'pair source target'"),
        ("1 1 1\n1 1\n", "'1 1' is no link"),
        ("0 1 1\n", "pair 0: expected pairs from 1 on"),
        ("9 1 1\n", "has links of 9 pairs, and there are 2"),
        ("1 1 1\n2 4 1\n", r"leaves the pair\. Expected words 1 to 3"),
    ],
)
def test_wrong_links_quote_the_line(tmp_path: Path, links: str, said: str) -> None:
    with pytest.raises(AttnscopeError, match=said):
        read_gold(files(tmp_path, links))


def test_wrong_texts_and_missing_files_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match=r"line 1: 'no pair' is no pair\. Expected"):
        read_gold(files(tmp_path, "0-0\n", "no pair\n"))
    with pytest.raises(AttnscopeError, match="--gold gone:away: expected files that exist"):
        read_gold("gone:away")
    for name, text in (("s", "a\nb\n"), ("t", "a\n"), ("l", "0-0\n0-0\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(AttnscopeError, match=r"has 2 lines and .* has 1"):
        read_gold(f"{tmp_path / 's'}:{tmp_path / 't'}:{tmp_path / 'l'}")
