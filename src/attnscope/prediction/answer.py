"""The one function: from data to a prediction."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from attnscope.datasets import documents, labelled, parallel
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText
from attnscope.datasets.readers.table import table_format
from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import Asked, AskedLabelled, Tell, silent
from attnscope.prediction.contents import LABELLED, PARALLEL, PLAIN
from attnscope.prediction.prediction import Prediction

Sets = LabelledText | ParallelText | DocumentSet


def predict(
    data: str | Path | Sets,
    *,
    without: Sequence[str] = (),
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
        tell: hears how far the work is, as ``(what, done, total)``.
        seed: draws samples, where the data are too many to be counted whole.
        data_dir: the folder of the published sets.

    Raises:
        AttnscopeError: the data cannot be read, or nothing is known about their kind.
    """
    text = read(data, tell=tell, data_dir=data_dir)
    taken = tuple(dict.fromkeys(word.strip().lower() for word in without if word.strip()))
    if isinstance(text, LabelledText):
        asked = AskedLabelled(text, taken, tell, seed)
        made = [write(asked) for write in LABELLED]
        kind = "labelled"
    elif isinstance(text, ParallelText):
        _refuse_without(taken, text.name)
        made = [write(Asked(text, taken, tell, seed)) for write in PARALLEL]
        kind = "parallel"
    else:
        _refuse_without(taken, text.name)
        made = [write(Asked(text, taken, tell, seed)) for write in PLAIN]
        kind = "documents"
    sections = tuple(section for section in made if section is not None)
    if not sections:
        raise AttnscopeError(f"'{text.name}': nothing can be predicted for {kind} text yet.")
    command = ["attnscope", "predict", text.name]
    command += ["--without", *taken] if taken else []
    keywords = f", without={taken!r}" if taken else ""
    return Prediction(
        name=text.name,
        kind=kind,
        verdict=" ".join(sections[0].sentences[:2]),
        facts={},
        sections=sections,
        command=shlex.join(command),
        python=f"import attnscope\n\nattnscope.predict({text.name!r}{keywords})",
    )


def read(
    data: str | Path | Sets, *, tell: Tell = silent, data_dir: str | Path | None = None
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
    return labelled(name, data_dir=data_dir)


def _refuse_without(words: tuple[str, ...], name: str) -> None:
    if words:
        raise AttnscopeError(
            f"--without {' '.join(words)} with '{name}': expected labelled text, for only there "
            "can a word give the label away."
        )
