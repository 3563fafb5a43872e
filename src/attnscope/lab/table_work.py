"""What the process that reads tables does: a prediction, and a training, as lines for the page.

Tables that were pasted stay in the memory of this process, the last few of them, and go with it:
nothing is written, and nothing that a page sends is run.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attnscope.datasets.kinds import LabelledText
from attnscope.datasets.readers.table import Reading, read_pasted
from attnscope.errors import AttnscopeError
from attnscope.lab import drawing
from attnscope.lab.table_training import Beside, Smoothed, learned, smoothed, training
from attnscope.markup import fill
from attnscope.prediction.answer import read
from attnscope.prediction.asked import AskedLabelled
from attnscope.prediction.facts import data_section
from attnscope.prediction.narrowing import drawn, refuse_no_classes
from attnscope.prediction.shaded import shaded_section
from attnscope.prediction.shortcuts import shortcuts_section
from attnscope.prediction.verdict import verdict_section
from attnscope.prediction.words import words_section
from attnscope.report import Figure, Line, Panel
from attnscope.report.section import Section, ShadedText
from attnscope.report.wording import number

TABLES, TEXTS = 4, 20_000
"""Tables that are kept, and texts of one that are counted at most."""
WORDS = 15
"""Rows of the table of words."""


@dataclass(eq=False)
class _Kept:
    asked: AskedLabelled
    fixed: tuple[Section, ...] = ()
    by_smoothing: dict[float, Smoothed] = field(default_factory=dict)


_tables: OrderedDict[str, _Kept] = OrderedDict()


def said(wish: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is said of a table: progress first, then the whole of it.

    Args:
        wish: ``key`` of a table that was read before; or ``table``, its text, or ``name``, a set or
            a file; ``text`` and ``label``, names of columns; ``sentence``; ``smoothing``.

    Raises:
        AttnscopeError: the table cannot be read; the sentence quotes the row.
    """
    key = wish.get("key") or _key(wish)
    if key not in _tables:
        if wish.get("table") is None and not wish.get("name"):
            yield {"kind": "gone"}
            return
        yield {"kind": "progress", "said": "reading the table"}
        _tables[key] = _Kept(AskedLabelled(_read(wish)))
        while len(_tables) > TABLES:
            _tables.popitem(last=False)
    _tables.move_to_end(key)
    kept = _tables[key]
    if not kept.fixed:
        yield {"kind": "progress", "said": "counting words"}
        _ = kept.asked.table, kept.asked.accuracy
        yield {"kind": "progress", "said": "looking for shortcuts"}
        kept.fixed = (shortcuts_section(kept.asked), data_section(kept.asked))
    asked = _smoothed(kept, float(wish["smoothing"]))
    own = _with_sentence(asked, str(wish.get("sentence") or ""))
    shaded = shaded_section(own)
    shortcuts, data = kept.fixed
    sections = [verdict_section(asked), _cut(words_section(asked)), shortcuts, data]
    yield {
        "kind": "said",
        "key": key,
        "title": asked.data.name,
        "sections": [_markup(section) for section in sections],
        "sentences": [_sentence(text) for text in shaded.shaded],
        "smoothing": asked.pseudo,
    }


def trained(wish: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a training part by part, beside what was said.

    Args:
        wish: as for :func:`said`, with the ``key`` and ``epochs``.
    """
    kept = _tables.get(str(wish.get("key")))
    if kept is None:
        yield {"kind": "gone"}
        return
    asked = _smoothed(kept, float(wish["smoothing"]))
    own = _with_sentence(asked, str(wish.get("sentence") or ""))
    texts = [text.words for text in shaded_section(own).shaded]
    ids = [asked.table.ids([word for word in words if word != "…"]) for words in texts]
    beside = Beside(asked)
    epochs: list[float] = []
    shares: list[float] = []
    mixed: list[float] = []
    scores = np.zeros((0, 0))
    for part in training(asked, int(wish["epochs"])):
        epochs += part.epochs.tolist()
        shares += [beside.share(row) for row in part.scores]
        mixed += [beside.share(row, shuffled=True) for row in part.scores]
        scores = part.scores
        figure = _figure(np.array(epochs), np.array(shares), np.array(mixed), beside.chance)
        message = {
            "kind": "part",
            "epochs": part.epochs.round(1).tolist(),
            "weights": [learned(part.scores, row).round(4).tolist() for row in ids],
            "data": drawing.columns(figure),
            "loss": round(float(part.losses[-1]), 4),
        }
        if len(epochs) == len(part.epochs):
            message["item"] = drawing.item(figure)
        yield message
    top = asked.table.words[1 + int(scores[-1, 1:].argmax())]
    yield {
        "kind": "trained",
        "said": f"In {shares[-1]:.0%} of the texts attention is where it was said (by chance "
        f"{beside.chance:.0%}, said with shuffled labels {mixed[-1]:.0%}); most of all it likes "
        f"'{top}'.",
    }


def _key(wish: dict[str, Any]) -> str:
    parts = (str(wish.get(name)) for name in ("name", "table", "text", "label"))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _read(wish: dict[str, Any]) -> LabelledText:
    reading = Reading(str(wish.get("text") or ""), str(wish.get("label") or ""), TEXTS)
    if wish.get("table") is not None:
        classes, splits = read_pasted(str(wish["table"]), reading)
        return refuse_no_classes(LabelledText("the pasted table", classes, splits))
    found = read(str(wish["name"]), reading=reading)
    if not isinstance(found, LabelledText):
        raise AttnscopeError(f"'{found.name}' is no labelled text: expected texts with labels.")
    return drawn(found, TEXTS, 0)


def _smoothed(kept: _Kept, pseudo: float) -> Smoothed:
    if pseudo not in kept.by_smoothing:
        if len(kept.by_smoothing) > 20:
            kept.by_smoothing.clear()
        kept.by_smoothing[pseudo] = smoothed(kept.asked, pseudo)
    return kept.by_smoothing[pseudo]


def _with_sentence(asked: Smoothed, sentence: str) -> Smoothed:
    if not sentence.strip():
        return asked
    made = smoothed(asked, asked.pseudo)
    for name in ("evidence", "attraction"):
        made.__dict__[name] = getattr(asked, name)
    made.__dict__["sentences"] = (sentence.strip(),)
    return made


def _cut(section: Section) -> Section:
    """Return the words without what does not fit a page beside controls."""
    table = section.tables[0]
    return Section(
        section.name,
        section.title,
        section.sentences[-1:],
        tables=(type(table)(table.name, table.title, table.columns, table.rows[:WORDS]),),
    )


def _markup(section: Section) -> dict[str, str]:
    cells = [
        [["" if c is None else number(c) if isinstance(c, float) else str(c) for c in row]
         for row in table.rows]
        for table in section.tables
    ]  # fmt: skip
    body = fill("lab/table_section", section=section, cells=cells)
    return {"name": section.name, "title": section.title, "html": str(body)}


def _sentence(text: ShadedText) -> dict[str, Any]:
    return {"note": text.note, "words": list(text.words), "said": text.weights.round(4).tolist()}


def _figure(epochs: np.ndarray, shares: np.ndarray, mixed: np.ndarray, chance: float) -> Figure:
    epochs = epochs / 1000
    flat = np.full(len(epochs), 100 * chance)
    panel = Panel(
        "Attention where it was said",
        "epoch (thousands)",
        "texts (%)",
        (
            Line(epochs, 100 * shares, "where it was said", 0),
            Line(epochs, 100 * mixed, "said with shuffled labels", 4),
            Line(epochs, flat, "chance", theory=True),
        ),
    )
    return Figure(
        "said-and-learned",
        "Texts whose most attended word is the one that was named before training",
        "",
        (panel,),
        columns=1,
    )
