"""What gives the label away without being what a text says."""

from __future__ import annotations

import shlex

import numpy as np

from attnscope.prediction.asked import AskedLabelled
from attnscope.probes.shortcuts import Search, Shortcut, find_duplicates, find_shortcuts
from attnscope.report import Section, Table

PRINTED = 15
SHOWN = 70
"""Characters of an example."""
REMOVABLE = ("word", "mark", "source", "rating")
"""Kinds that are one token, which can be left out."""
MOST_DUPLICATES = 60_000
"""Texts up to which duplicates are looked for; more are a job of their own."""


def shortcuts_section(asked: AskedLabelled) -> Section:
    """List shortcuts with the share of texts that each decides, and examples."""
    texts = [_without(text, asked.without) for text in asked.texts]

    def told(done: int) -> None:
        asked.tell("looking for shortcuts", done, len(texts))

    found = find_shortcuts(texts, asked.labels, len(asked.classes), seed=asked.seed, tell=told)
    rows = tuple(_row(asked, texts, one) for one in found.shortcuts)
    columns = (
        "shortcut",
        "kind",
        "gives away",
        "texts (%)",
        "surely (%)",
        "at least (95 %, all together)",
        "why it is no content",
        "example",
    )
    tables = [Table("shortcuts", "What gives the label away", columns, rows[:PRINTED])]
    if len(rows) > PRINTED:
        every = f"All {len(rows)} of them"
        tables.append(Table("all-shortcuts", every, columns, rows, folded=True))
    return Section(
        "shortcuts",
        "Shortcuts",
        (*_said(asked, found), *_duplicates(asked)),
        tables=tuple(tables) if rows else (),
        again=_again(asked, found),
    )


def _said(asked: AskedLabelled, found: Search) -> tuple[str, ...]:
    least = 100 * found.least["word"]
    could = (
        f"Looked for among {found.texts:,} texts: words, marks, markup, ratings, sources "
        "(addresses, bracketed names), boiler-plate, tokens at a place, lengths. A token that "
        "decides could be told from chance and from content if it stood in "
        f"{least:.2g} % of the texts."
    )
    if least > 20:
        return (
            f"Cannot tell: {found.texts:,} texts are too few to tell a shortcut from chance; about "
            f"{int(found.texts * least / 1):,} would do for one that stands in 1 % of them.",
        )
    if not found.shortcuts:
        return ("No shortcut was found.", could)
    covered = np.unique(np.concatenate([one.texts for one in found.shortcuts]))
    first = found.shortcuts[0]
    several = len(found.shortcuts)
    return (
        f"{several} {'shortcut gives' if several == 1 else 'shortcuts give'} the label away in "
        f"{len(covered) / found.texts:.1%} of the texts. Attention will latch on to them: first of "
        f"all {_quoted(first)} ({first.surely:.0%} are '{asked.classes[first.label]}').",
        could,
    )


def _row(
    asked: AskedLabelled, texts: list[str], one: Shortcut
) -> tuple[str | float | int | None, ...]:
    also = f" (also {', '.join(one.also[:3])})" if one.also else ""
    return (
        one.name + also,
        one.kind,
        asked.classes[one.label],
        round(100 * one.share, 2),
        round(100 * one.surely, 1),
        round(100 * one.low, 1),
        one.why,
        _example(texts[int(one.texts[0])], one.name),
    )


def _quoted(one: Shortcut) -> str:
    return one.name if one.kind in ("position", "length", "boiler-plate") else f"'{one.name}'"


def _example(text: str, name: str) -> str:
    """Return the part of a text around a shortcut."""
    flat = " ".join(text.split())
    at = max(0, flat.lower().find(name.lower()))
    start = max(0, min(at - SHOWN // 3, len(flat) - SHOWN))
    cut = flat[start : start + SHOWN]
    return f"{'…' if start else ''}{cut}{'…' if start + SHOWN < len(flat) else ''}"


def _without(text: str, words: tuple[str, ...]) -> str:
    """Take words out of a text, as they stand between spaces and marks."""
    if not words:
        return text
    kept = (part for part in text.split() if part.lower().strip(".,;:!?\"'") not in words)
    return " ".join(kept)


def _again(asked: AskedLabelled, found: Search) -> tuple[str, ...]:
    words = [one.name for one in found.shortcuts if one.kind in REMOVABLE]
    if not words:
        return ()
    gone = [*asked.without, *words[:5]]
    return (shlex.join(["attnscope", "predict", asked.data.name, "--without", *gone]),)


def _duplicates(asked: AskedLabelled) -> tuple[str, ...]:
    """Say which texts of other splits are in training already."""
    others = {name: split.texts for name, split in asked.data.splits.items() if name != "train"}
    size = len(asked.texts) + sum(map(len, others.values()))
    if not others or size > MOST_DUPLICATES:
        return ()
    asked.tell("looking for texts that are there twice", 0, 0)
    found = find_duplicates(asked.texts, asked.labels, others)
    lines = []
    for split, texts in others.items():
        same, near = found.leaked[split], found.near[split]
        if same + near:
            row, train = found.examples[split][0]
            lines.append(
                f"{same + near:,} of the {len(texts):,} {split} texts "
                f"({(same + near) / len(texts):.1%}) are in training, {same:,} word for word and "
                f"{near:,} nearly: accuracy on them is memory. Row {row + 1} of {split} is row "
                f"{train + 1} of training: '{_example(texts[row], '')}'."
            )
    return tuple(lines)
