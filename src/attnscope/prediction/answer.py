"""The one function: from data to a prediction."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from attnscope.datasets import documents, labelled, parallel
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText
from attnscope.datasets.readers.gold_links import Gold, read_gold
from attnscope.datasets.readers.table import Reading, table_format
from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import AskedLabelled, AskedText, Tell, silent
from attnscope.prediction.asked_parallel import AskedParallel
from attnscope.prediction.contents import LABELLED, PARALLEL, PLAIN
from attnscope.prediction.narrowing import drawn, of_classes, refuse_no_classes
from attnscope.prediction.prediction import Prediction

MOST = 200_000
"""Texts that are counted at most."""
Sets = LabelledText | ParallelText | DocumentSet


def predict(
    data: str | Path | Sets,
    *,
    without: Sequence[str] = (),
    sentences: Sequence[str] = (),
    classes: Sequence[str] = (),
    text: str | None = None,
    label: str | None = None,
    gold: str | None = None,
    batch: int | None = None,
    context: int | None = None,
    most: int = MOST,
    tell: Tell = silent,
    seed: int = 0,
    data_dir: str | Path | None = None,
) -> Prediction:
    """Say what attention will look at in some data, before anything is trained.

    Args:
        data: a key of the catalogue (``"sst2"``); a table of your own, ``.csv`` or ``.tsv``; two
            line-aligned files ``SOURCE:TARGET``; a file of running text; or a set that was read
            already.
        without: words to leave out of every text, so that the prediction is for data without them.
        sentences: texts of your own that are shaded too.
        classes: only texts of these classes; all unless given.
        text: the column of a table that holds the text, where its name is not a usual one.
        label: the column that holds the label.
        gold: word alignments by people, for parallel text: ``LINKS``, ``TEXTS:LINKS`` or
            ``SOURCE:TARGET:LINKS``; see :mod:`attnscope.datasets.readers.gold_links`.
        batch: sequences in an update of the language model, for running text.
        context: tokens in a sequence, for running text.
        most: texts that are counted at most, drawn at random from a larger table.
        tell: hears how far the work is, as ``(what, done, total)``.
        seed: draws samples, where the data are too many to be counted whole.
        data_dir: the folder of the published sets.

    Returns:
        The prediction: its verdict, its sections, its report.

    Raises:
        AttnscopeError: the data cannot be read, or nothing can be said of their kind.
    """
    if most < 1:
        raise AttnscopeError(f"most = {most}: expected 1 text or more.")
    reading = Reading(
        text or "", label or "", most, seed, lambda rows: tell("reading rows", rows, 0)
    )
    found = read(data, reading=reading, tell=tell, data_dir=data_dir)
    _belongs(found, {"gold": gold}, ParallelText, "parallel text")
    _belongs(found, {"batch": batch, "context": context}, DocumentSet, "running text")
    taken = tuple(dict.fromkeys(word.strip().lower() for word in without if word.strip()))
    shade = None
    if isinstance(found, LabelledText):
        found = drawn(of_classes(found, classes), most, seed)
        asked = AskedLabelled(found, taken, tell, seed, tuple(sentences))
        made = [write(asked) for write in LABELLED]
        kind, shade = "labelled", asked.shade
    else:
        _labelled_only(found.name, {"without": taken, "sentence": sentences, "classes": classes})
        if isinstance(found, ParallelText):
            kind = "parallel"
            pairs = AskedParallel(found, taken, tell, seed, gold=_gold(gold, found))
            made = [write(pairs) for write in PARALLEL]
        else:
            kind = "documents"
            texts = AskedText(found, taken, tell, seed, batch=batch, context=context)
            made = [write(texts) for write in PLAIN]
    sections = tuple(section for section in made if section is not None)
    if not sections:
        raise AttnscopeError(
            f"'{found.name}' is {kind} text, of which nothing can be said yet: expected a table of "
            "texts and labels."
        )
    given: dict[str, tuple[str, ...]] = {
        "without": taken,
        "sentence": tuple(sentences),
        "classes": tuple(classes),
        "gold": (gold,) if gold else (),
        "batch": (str(batch),) if batch else (),
        "context": (str(context),) if context else (),
    }
    return Prediction(
        name=found.name,
        kind=kind,
        verdict=sections[0].sentences[0],
        sections=sections,
        settings={"data": found.name, **{name: list(v) for name, v in given.items() if v}},
        shade=shade,
    )


def read(
    data: str | Path | Sets,
    *,
    reading: Reading = Reading(),  # noqa: B008 - a frozen value
    tell: Tell = silent,
    data_dir: str | Path | None = None,
) -> Sets:
    """Read data of whatever kind they are: told by the catalogue, by a colon, by the name's end."""
    if isinstance(data, LabelledText | ParallelText | DocumentSet):
        return data
    name = str(data)
    tell(f"reading {name}", 0, 0)
    kind = CATALOGUE[name].kind if name in CATALOGUE else ""
    if kind == "parallel" or (not kind and ":" in name and not os.path.exists(name)):
        return parallel(name, data_dir=data_dir)
    table = table_format(Path(name)) is not None or os.path.isdir(name)
    if kind == "documents" or (not kind and not table and os.path.isfile(name)):
        return documents(name, data_dir=data_dir)
    return refuse_no_classes(labelled(name, data_dir=data_dir, reading=reading))


def _gold(files: str | None, pairs: ParallelText) -> Gold | None:
    if not files:
        return None
    found = read_gold(files, pairs.splits["train"])
    left = sum(pairs.skipped.values())
    if left and not found.own_text:
        raise AttnscopeError(
            f"--gold {files} counts lines of '{pairs.name}', of which {left:,} were left out "
            f"({', '.join(pairs.skipped)}): expected texts as well, as TEXTS:LINKS."
        )
    return found


def _belongs(found: Sets, given: dict[str, object], kind: type, said: str) -> None:
    for flag, value in given.items():
        if value is not None and not isinstance(found, kind):
            raise AttnscopeError(
                f"--{flag} {value} with '{found.name}': expected {said}, for which alone it has a "
                "meaning."
            )


def _labelled_only(name: str, given: dict[str, Sequence[str]]) -> None:
    for flag, words in given.items():
        if words:
            raise AttnscopeError(
                f"--{flag} {' '.join(words)[:80]} with '{name}': expected labelled text, for which "
                "alone it has a meaning."
            )
