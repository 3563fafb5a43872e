"""From a name or a path to the texts: the one door to the readers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attnscope.datasets.catalogue import CATALOGUE, DataFile, entry
from attnscope.datasets.kinds import DocumentSet, LabelledText, ParallelText, Split
from attnscope.datasets.place import data_dir as data_folder
from attnscope.datasets.place import require
from attnscope.datasets.readers.ag_news import read_ag_news
from attnscope.datasets.readers.amazon import read_amazon
from attnscope.datasets.readers.imdb import read_imdb
from attnscope.datasets.readers.newsgroups import read_newsgroups
from attnscope.datasets.readers.pairs import read_aligned, read_tabbed
from attnscope.datasets.readers.sms_spam import read_sms_spam
from attnscope.datasets.readers.stsa import read_stsa
from attnscope.datasets.readers.table import Reading, read_tables, table_format
from attnscope.datasets.readers.wikitext import read_wikitext
from attnscope.datasets.readers.yelp import read_yelp
from attnscope.datasets.text import filled, lines, unreadable_as_sentence
from attnscope.errors import AttnscopeError, nearest

_SPLITS = ("train", "dev", "test")

# Readers of one file: all of them give splits, those of an archive several at once.
_LABELLED: dict[str, Callable[[Path, DataFile, tuple[str, ...]], dict[str, Split]]] = {
    "sst2": lambda path, file, classes: {file.split: read_stsa(path, 2)},
    "sst5": lambda path, file, classes: {file.split: read_stsa(path, 5)},
    "imdb": lambda path, file, classes: read_imdb(path),
    "ag_news": lambda path, file, classes: {file.split: read_ag_news(path)},
    "newsgroups": lambda path, file, classes: read_newsgroups(path, classes),
    "sms_spam": lambda path, file, classes: {"train": read_sms_spam(path)},
    "amazon": lambda path, file, classes: read_amazon(path),
    "yelp": lambda path, file, classes: {"train": read_yelp(path)},
}


def labelled(
    data: str | Path,
    *,
    data_dir: str | Path | None = None,
    reading: Reading = Reading(),  # noqa: B008 - a frozen value
) -> LabelledText:
    """Read texts with labels.

    Args:
        data: a key of the catalogue such as ``"sst2"``; or a table of your own, ``.csv`` or
            ``.tsv``, which gives the split ``train``; or a folder with ``train``, and perhaps
            ``dev`` and ``test``, as such tables. Tables may be packed (``.gz``, ``.xz``);
            :func:`~attnscope.datasets.readers.table.read_tables` says what they hold.
        data_dir: the folder of the published sets; by default the one of
            :func:`~attnscope.datasets.place.data_dir`.
        reading: how a table of your own is read: its columns, and how many rows at most.

    Raises:
        AttnscopeError: if it is not there or cannot be read, and if all training texts have the
            same label.
    """
    if str(data) in _LABELLED:
        dataset = entry(str(data))
        splits: dict[str, Split] = {}
        for file, path in require(dataset, data_folder(data_dir)).items():
            splits.update(_LABELLED[dataset.key](path, file, dataset.classes))
        return LabelledText(dataset.key, dataset.classes, splits)
    path = _own(data, "labelled", "a table of your own (.csv or .tsv), or a folder with train.csv")
    classes, splits = read_tables(_tables(path), reading)
    return LabelledText(str(data), classes, splits)


def parallel(data: str | Path, *, data_dir: str | Path | None = None) -> ParallelText:
    """Read sentences with their translations.

    Args:
        data: a key of the catalogue such as ``"multi30k"``, or two line-aligned files of your own
            as ``SOURCE:TARGET``, which give the split ``train``.
        data_dir: the folder of the published sets, as for :func:`labelled`.

    Raises:
        AttnscopeError: if it is not there or cannot be read, or if two files differ in length.
    """
    name = str(data)
    if name in CATALOGUE and CATALOGUE[name].kind == "parallel":
        return _published_pairs(name, data_folder(data_dir))
    if name not in CATALOGUE:
        # A path may hold a colon itself, so each of them is tried.
        for colon in (at for at, letter in enumerate(name) if letter == ":"):
            source, target = name[:colon], name[colon + 1 :]
            if os.path.isfile(source) and os.path.isfile(target):
                return parallel_files(source, target)
    raise _unknown(name, "parallel", "two files that exist, as SOURCE:TARGET")


def parallel_files(source: str | Path, target: str | Path) -> ParallelText:
    """Read two line-aligned files of your own; the languages are the ends of their names.

    ``corpus.de.gz`` is German, ``"de"``.
    """
    paths = Path(source), Path(target)
    skipped: Counter[str] = Counter()
    pairs = read_aligned(*paths, skipped)
    first, second = (
        path.name.removesuffix(".gz").removesuffix(".xz").rpartition(".")[2] for path in paths
    )
    return ParallelText(f"{source}:{target}", (first, second), {"train": pairs}, dict(skipped))


def documents(data: str | Path, *, data_dir: str | Path | None = None) -> DocumentSet:
    """Read running text.

    Args:
        data: a key of the catalogue (``"wikitext2"``), or a text file of your own with one
            document a line, plain or packed, which gives the split ``train``.
        data_dir: the folder of the published sets, as for :func:`labelled`.
    """
    skipped: Counter[str] = Counter()
    if str(data) == "wikitext2":
        splits: dict[str, list[str]] = {}
        for path in require(entry("wikitext2"), data_folder(data_dir)).values():
            splits.update(read_wikitext(path, skipped))
        return DocumentSet("wikitext2", splits, dict(skipped))
    path = _own(data, "documents", "a text file of your own with one document a line")
    texts = [line.strip() for _, line in filled(lines(path), skipped)]
    return DocumentSet(str(data), {"train": texts}, dict(skipped))


def _published_pairs(key: str, folder: Path) -> ParallelText:
    found = require(entry(key), folder)
    bpe = key == "iwslt14"
    skipped: Counter[str] = Counter()
    splits: dict[str, tuple[list[str], list[str]]] = {}
    languages = ("", "")
    for split in dict.fromkeys(file.split for file in found):
        files = [file for file in found if file.split == split]
        if len(files) == 1:
            first, _, second = files[0].language.partition("-")
            splits[split] = read_tabbed(found[files[0]], skipped, bpe=bpe)
        else:
            source, target = files
            first, second = source.language, target.language
            splits[split] = read_aligned(found[source], found[target], skipped, bpe=bpe)
        languages = (first, second)
    return ParallelText(key, languages, splits, dict(skipped))


def _own(data: str | Path, kind: str, expected: str) -> Path:
    # Not by Path.exists, which raises where a name is too long to be one.
    if str(data) in CATALOGUE or not os.path.exists(data):
        raise _unknown(str(data), kind, expected)
    return Path(data)


def _unknown(name: str, kind: str, expected: str) -> AttnscopeError:
    keys = [key for key, dataset in CATALOGUE.items() if dataset.kind == kind]
    if name in CATALOGUE:
        found = f"the set '{name}' is of the kind {CATALOGUE[name].kind}, not {kind}."
    else:
        short = name if len(name) <= 200 else f"{name[:200]}…"
        found = f"'{short}' is neither a {kind} set nor a path that exists.{nearest(name, keys)}"
    return AttnscopeError(f"{found} Expected one of {', '.join(keys)}, or {expected}.")


def _tables(path: Path) -> dict[str, Path]:
    if not path.is_dir():
        if table_format(path) is None:
            raise AttnscopeError(
                f"'{path}' is named neither .csv nor .tsv (.gz or .xz may follow): the name tells "
                "whether commas or tabs stand between the columns."
            )
        return {"train": path}
    found: dict[str, Path] = {}
    with unreadable_as_sentence(path):
        files = sorted(path.iterdir())
    for file in files:
        split = file.name.partition(".")[0]
        if split not in _SPLITS or table_format(file) is None:
            continue
        if split in found:
            raise AttnscopeError(
                f"'{path}' has {found[split].name} and {file.name}: expected one {split} table."
            )
        found[split] = file
    if "train" not in found:
        raise AttnscopeError(
            f"'{path}' has no training table. Expected train.csv or train.tsv (.gz or .xz may "
            "follow), and dev and test like it if there are."
        )
    return {split: found[split] for split in _SPLITS if split in found}
