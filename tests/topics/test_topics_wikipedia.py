"""Wikipedia dumps: pages, name spaces, dumps that end too early."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from attnscope.errors import AttnscopeError
from attnscope.topics.corpus import stream

SPACES = (
    '<siteinfo><namespaces><namespace key="0" /><namespace key="1">Talk</namespace>'
    '<namespace key="4">Wikipedia</namespace></namespaces></siteinfo>'
)

# Level 1 packs blocks of 100 kB, so that a short file has several.
PACKERS = [
    partial(bz2.compress, compresslevel=1),
    gzip.compress,
    partial(lzma.compress, preset=0),
]


def page(title: str, text: str, space: str | None = None) -> str:
    number = "" if space is None else f"<ns>{space}</ns>"
    revision = f'<revision><text xml:space="preserve">{text}</text></revision>'
    return f"<page><title>{title}</title>{number}{revision}</page>\n"


def dump(*pages: str) -> str:
    return f'<mediawiki xml:lang="en">{SPACES}{"".join(pages)}</mediawiki>'


def read(tmp_path: Path, text: str | bytes) -> list[str]:
    path = tmp_path / "dump"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(stream(path))


def test_articles_and_nothing_else(tmp_path: Path) -> None:
    text = dump(
        page("Du Fu", "A [[poet]] &amp; &lt;b&gt;more&lt;/b&gt;.", "0"),
        page("Tu Fu", "#REDIRECT [[Du Fu]]", "0"),
        page("Talk of the Town", "A magazine.", "0"),
        page("Talk:Du Fu", "Chatter.", "1"),
        page("Bare", "", "0"),
    )
    assert read(tmp_path, text) == [
        "Du Fu\n\nA poet & more.",
        "Talk of the Town\n\nA magazine.",
    ]


def test_old_dumps_tell_name_spaces_by_the_title(tmp_path: Path) -> None:
    text = dump(page("Wikipedia:About", "Not an article."), page("2001: A Space Odyssey", "A film"))
    assert read(tmp_path, text) == ["2001: A Space Odyssey\n\nA film"]


def test_the_last_revision_counts(tmp_path: Path) -> None:
    old = "<revision><text>old</text></revision>"
    text = dump(page("A", "new").replace("<revision>", f"{old}<revision>", 1))
    assert read(tmp_path, text) == ["A\n\nnew"]


@pytest.mark.parametrize("pack", PACKERS)
def test_packed_dumps(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    assert read(tmp_path, pack(dump(page("A", "b")).encode())) == ["A\n\nb"]


def test_a_dump_in_several_packed_streams(tmp_path: Path) -> None:
    whole = dump(page("A", "b"), page("C", "d")).encode()
    packed = bz2.compress(whole[:150]) + bz2.compress(whole[150:])
    assert read(tmp_path, packed) == ["A\n\nb", "C\n\nd"]


@pytest.mark.parametrize("end", ["<page><title>C</title><te", "<page>", "<page><title>Caf\xc3"])
def test_a_dump_cut_short_gives_its_whole_pages(tmp_path: Path, end: str) -> None:
    cut = dump(page("A", "b"), page("B", "c")).removesuffix("</mediawiki>") + end
    with pytest.warns(UserWarning, match="dump' is cut short .*: the 2 articles before are used"):
        assert read(tmp_path, cut.encode("latin-1")) == ["A\n\nb", "B\n\nc"]


@pytest.mark.parametrize("pack", PACKERS)
def test_a_packed_dump_cut_short(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    draw = random.Random(0)
    # Of little pattern: packed they are still long.
    texts = ["".join(draw.choices("abcdefgh ", k=1_000)).strip() for _ in range(500)]
    packed = pack(dump(*(page("T", text) for text in texts)).encode())
    with pytest.warns(UserWarning, match="is cut short"):
        found = read(tmp_path, packed[: len(packed) * 3 // 4])
    assert found == [f"T\n\n{text}" for text in texts[: len(found)]]
    assert 100 < len(found) < 400


def test_cut_before_the_first_article(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="is cut short before its first article ends"):
        read(tmp_path, "<mediawiki><page><title>A")


def test_broken_xml(tmp_path: Path) -> None:
    text = dump(page("A", "b")).replace("</revision>", "\n</text>")
    with pytest.raises(AttnscopeError, match=r"dump', line 2: this is not XML \(mismatched tag\)"):
        read(tmp_path, text)


def test_other_xml(tmp_path: Path) -> None:
    with pytest.raises(AttnscopeError, match="outermost element is <rss>: expected <mediawiki>"):
        read(tmp_path, '<?xml version="1.0"?><rss/>')


def test_entities_of_its_own(tmp_path: Path) -> None:
    text = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><mediawiki/>'
    with pytest.raises(AttnscopeError, match="declares a document type"):
        read(tmp_path, text)
