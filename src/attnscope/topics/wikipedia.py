"""Wikipedia XML dumps, one page at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from xml.parsers import expat

from attnscope.errors import AttnscopeError
from attnscope.topics.markup import REDIRECT, plain
from attnscope.topics.unpack import PackedFile

_BLOCK = 2**16
_LONGEST = 2**24
_CUT = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
_KEPT = ("title", "ns", "text", "namespace")


def articles(source: PackedFile) -> Iterator[str]:
    """Yield the articles of a dump as plain text, each after its title.

    Redirects and pages outside the main name space (talk, users, categories) are left out; the
    names of name spaces are those that the dump itself lists. Of a page with its history the last
    revision counts. A dump that ends too early, such as enwik8, gives the pages that are whole.

    Warns:
        UserWarning: the dump is cut short; the sentence says how many articles were read.

    Raises:
        AttnscopeError: it is not XML, not a dump, or declares entities of its own.
    """
    parser = _Parser(source.label)
    count = 0
    while block := source.stream.read(_BLOCK):
        for text in parser.feed(block):
            count += 1
            yield text
    if source.damage is not None:
        _say_cut(source.label, count, str(source.damage))
        return
    for text in parser.feed(b"", final=True):
        count += 1
        yield text
    if parser.cut:
        _say_cut(source.label, count, "the XML is not closed")


def _say_cut(label: str, count: int, why: str) -> None:
    if not count:
        raise AttnscopeError(
            f"'{label}' is cut short before its first article ends ({why}): expected a Wikipedia "
            "dump with whole pages."
        )
    warnings.warn(
        f"'{label}' is cut short ({why}): the {count:,} articles before are used.",
        stacklevel=3,
    )


class _Parser:
    """Pages from blocks of XML. Nothing but the page in hand is kept."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.cut = False
        self.path: list[str] = []
        self.spaces: set[str] = set()
        self.key = ""
        self.pieces: list[str] = []
        self.length = 0
        self.page: dict[str, str] = {}
        self.done: list[str] = []
        self.expat = expat.ParserCreate()
        self.expat.buffer_text = True
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.StartDoctypeDeclHandler = self._refuse

    def feed(self, block: bytes, final: bool = False) -> Iterator[str]:
        try:
            self.expat.Parse(block, final)
        except expat.ExpatError as error:
            if not (final and error.code in _CUT):
                raise AttnscopeError(
                    f"'{self.label}', line {error.lineno}: this is not XML "
                    f"({expat.ErrorString(error.code)}). Expected a Wikipedia dump as published; "
                    "fetch it again."
                ) from error
            self.cut = True
        done, self.done = self.done, []
        yield from done

    def _refuse(self, *_: object) -> None:
        raise AttnscopeError(
            f"'{self.label}' declares a document type, which may define entities: expected a "
            "Wikipedia dump, which has none."
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self.path and tag != "mediawiki":
            raise AttnscopeError(
                f"'{self.label}' is XML, but its outermost element is <{tag}>: expected "
                "<mediawiki>, as in a Wikipedia dump."
            )
        self.path.append(tag)
        if tag == "page":
            self.page = {}
        elif tag in _KEPT:
            self.key = attributes.get("key", "")
            self.pieces, self.length = [], 0
            self.expat.CharacterDataHandler = self._gather

    def _gather(self, data: str) -> None:
        self.length += len(data)
        if self.length > _LONGEST:
            raise AttnscopeError(
                f"'{self.label}', line {self.expat.CurrentLineNumber}: the text of a page is "
                f"longer than {_LONGEST:,} characters: expected a Wikipedia dump."
            )
        self.pieces.append(data)

    def _end(self, tag: str) -> None:
        self.path.pop()
        if tag in _KEPT:
            self.expat.CharacterDataHandler = None
            value = "".join(self.pieces)
            self.pieces = []
            if tag == "namespace" and value and self.key != "0":
                self.spaces.add(value)
            elif tag != "namespace":
                self.page[tag] = value
        elif tag == "page":
            self._finish()

    def _finish(self) -> None:
        title, text = self.page.get("title", ""), self.page.get("text", "")
        # Dumps of before 2012 do not number the name space of a page.
        main = self.page.get("ns", "0") == "0" and title.partition(":")[0] not in (
            self.spaces if ":" in title else ()
        )
        if main and text and not REDIRECT.match(text):
            self.done.append(f"{title}\n\n{plain(text)}")
