"""Wiki markup to the text a reader sees, well enough to count words."""

from __future__ import annotations

import html
import re

_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
# What is between these tags is not prose.
_ELEMENT = re.compile(
    r"<(/?)(ref|math|gallery|timeline|source|syntaxhighlight|code|pre|score|imagemap|hiero)\b"
    r"([^<>]*)>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_BRACE = re.compile(r"\{\{|\}\}|\{\||\|\}")
_INNERMOST = re.compile(r"\[\[([^\[\]]*)\]\]")
_PREFIX = re.compile(r"^\s*:?([A-Za-z][\w -]*):")
_EXTERNAL = re.compile(r"\[(?:https?|ftp)://([^\[\]\n]*)\]")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://\S+")
_QUOTES = re.compile(r"'{2,}")
_SWITCH = re.compile(r"__[A-Z]+__")
_BLANK = re.compile(r"\n{3,}")
_CLOSES = {"{{": "}}", "{|": "|}"}
_NESTED = 50
"""How deep marks may stand in each other; it keeps the cost in step with the length."""

REDIRECT = re.compile(r"\s*#redirect\b", re.IGNORECASE)
"""How the text of a page begins that only points to another."""


def plain(markup: str) -> str:
    """Return the prose of a page: no templates, tables, references, files, tags or addresses.

    Of a link its shown text is kept; links into a name space (``[[File:...]]``,
    ``[[Category:...]]``, ``[[de:...]]``) go with all that is in them. An opening mark that is never
    closed is taken off by itself, so that a slip in the source does not cost the rest of the page.
    No rule looks ahead further than the next mark of its kind: the cost is in step with the length.

    >>> plain("'''Du Fu''' ({{lang|zh|x}}) was a [[Tang dynasty|Tang]] [[poet]].<ref>A.</ref>")
    'Du Fu () was a Tang poet.'
    """
    text = _COMMENT.sub("", markup)
    text = _without_elements(text)
    text = _without_braces(text)
    text = _links(text)
    text = _EXTERNAL.sub(lambda link: link[1].partition(" ")[2], text)
    text = _ADDRESS.sub("", text)
    text = _TAG.sub("", text)
    text = _QUOTES.sub("", text)
    text = _SWITCH.sub("", text)
    text = "\n".join(_line(each) for each in text.split("\n"))
    return _BLANK.sub("\n\n", html.unescape(text)).strip()


def _without_elements(text: str) -> str:
    """Take out elements with all that is in them; a tag without its partner goes alone."""
    begun: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for tag in _ELEMENT.finditer(text):
        closing, name, rest = tag[1], tag[2].lower(), tag[3]
        if closing:
            spans.append((begun.pop(name, tag.start()), tag.end()))
        elif rest.endswith("/"):
            spans.append(tag.span())
        else:
            # They do not stand in each other, so an earlier one was never closed.
            begun[name] = tag.start()
    return _without(text, spans)


def _without_braces(text: str) -> str:
    """Take out ``{{...}}`` and ``{|...|}``, nested ones too, in one walk over the text."""
    opened: list[re.Match[str]] = []
    spans: list[tuple[int, int]] = []
    for mark in _BRACE.finditer(text):
        if mark[0] in _CLOSES:
            opened.append(mark)
        elif any(_CLOSES[each[0]] == mark[0] for each in opened[-_NESTED:]):
            while _CLOSES[opened[-1][0]] != mark[0]:
                opened.pop()
            spans.append((opened.pop().start(), mark.end()))
    return _BRACE.sub("", _without(text, spans))


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Leave out spans, which may lie in each other."""
    pieces: list[str] = []
    at = 0
    for start, end in sorted(spans):
        if end > at:
            pieces.append(text[at : max(at, start)])
            at = end
    return "".join([*pieces, text[at:]])


def _line(line: str) -> str:
    """Take the marks of headings and lists off a line."""
    return line.strip("= \t") if line.startswith("=") else line.lstrip("*#:;").lstrip(" ")


def _links(text: str) -> str:
    """Replace links from the inside out, since the caption of a file may hold links."""
    for _ in range(_NESTED):
        text, count = _INNERMOST.subn(_shown, text)
        if not count:
            break
    return text.replace("[[", "").replace("]]", "")


def _shown(link: re.Match[str]) -> str:
    target, bar, shown = link[1].partition("|")
    if _PREFIX.match(target) and not target.startswith(":"):
        return ""
    # Of several parts the last is shown.
    return shown.rpartition("|")[2] if bar else target.lstrip(":")
