"""The corpus and its topics, fitted once and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.place import cache_dir, data_dir, require
from attnscope.errors import AttnscopeError
from attnscope.pretrained.plan import Plan, count_together, make_plan
from attnscope.topics import TopicModel, fit_topics, load_topics, stream, topic_words

WIKITEXT = "wikitext2"


def find_corpus(corpus: str) -> Path:
    """Return where a corpus lies: a file or folder, or the data set of that name.

    Raises:
        AttnscopeError: it is not there; the sentence says how to get it.
    """
    path = Path(corpus).expanduser()
    if path.exists():
        return path
    if corpus == WIKITEXT:
        found = require(CATALOGUE[WIKITEXT], data_dir())
        return next(iter(found.values()))
    raise AttnscopeError(
        f"the corpus '{corpus}' is not there: expected a folder of text files, a file with one "
        f"document a line, a WikiText file, a Wikipedia XML dump, or '{WIKITEXT}' "
        f"(`attnscope data get {WIKITEXT}`)."
    )


def documents(corpus: str, most: int) -> Iterator[str]:
    """Yield the first documents of a corpus."""
    return islice(stream(find_corpus(corpus)), most)


def topic_model(corpus: str, topics: int, passes: int, vocabulary: int, seed: int) -> TopicModel:
    """Fit topics to a corpus, or take those that were fitted to it before.

    They are kept in the user's cache under a name made of the corpus (place, size, time of change)
    and the settings.
    """
    path = find_corpus(corpus)
    said = [_print(path), topics, passes, vocabulary, seed]
    name = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
    kept = cache_dir() / "attnscope" / "topics" / f"{name}.safetensors"
    if kept.is_file():
        return load_topics(kept)
    model = fit_topics(path, topics=topics, passes=passes, vocabulary=vocabulary, seed=seed)
    model.save(kept)
    return model


def _print(path: Path) -> list[str]:
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    facts = [(str(each.resolve()), each.stat()) for each in files]
    return [f"{name} {found.st_size} {found.st_mtime_ns}" for name, found in facts]


@lru_cache(maxsize=4)
def plan_of(
    corpus: str,
    topics: int,
    passes: int,
    vocabulary: int,
    seed: int,
    thresholds: tuple[float, ...],
    most: int,
) -> tuple[TopicModel, Plan]:
    """Return topics, and the pairs that are compared in the first documents of a corpus.

    Raises:
        AttnscopeError: no pair of words with one topic is left; the sentence says which thresholds
            would leave some.
    """
    model = topic_model(corpus, topics, passes, vocabulary, seed)
    chosen = [
        topic_words(model, threshold, overlap=overlap)
        for overlap in (False, True)
        for threshold in thresholds
    ]
    return model, count_together(make_plan(chosen, seed), documents(corpus, most))
