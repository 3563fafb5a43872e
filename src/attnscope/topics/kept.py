"""Topics of a corpus, fitted once and kept in the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attnscope.bounds import Count, Several, check_fields
from attnscope.datasets.catalogue import CATALOGUE
from attnscope.datasets.place import cache_dir, data_dir, home, require
from attnscope.errors import AttnscopeError
from attnscope.topics.corpus import stream
from attnscope.topics.lda import fit_topics
from attnscope.topics.model import TopicModel, load_topics

WIKITEXT = "wikitext2"


@dataclass(frozen=True)
class TopicFit:
    """Which corpus topics are fitted to, and how."""

    corpus: str = WIKITEXT
    """File or folder of documents, or wikitext2."""
    topics: Several = 100
    """Topics that are fitted."""
    passes: Count = 6
    """Passes of the fit over the corpus."""
    vocabulary: Count = 100_000
    """Words that topics are made of, at most."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def path(self) -> Path:
        """Where the corpus lies: a file or folder, or the data set of that name.

        Raises:
            AttnscopeError: it is not there; the sentence says how to get it.
        """
        path = home(self.corpus)
        if os.path.exists(path):
            return path
        if self.corpus == WIKITEXT:
            return next(iter(require(CATALOGUE[WIKITEXT], data_dir()).values()))
        raise AttnscopeError(
            f"the corpus '{self.corpus}' is not there: expected a folder of text files, a file "
            "with one document a line, a WikiText file, a Wikipedia XML dump, or "
            f"'{WIKITEXT}' (`attnscope data get {WIKITEXT}`)."
        )

    def documents(self, most: int) -> Iterator[str]:
        """Yield the first documents of the corpus."""
        return islice(stream(self.path), most)

    def model(self, seed: int) -> TopicModel:
        """Fit topics to the corpus, or take those that were fitted to it before.

        They are kept under a name made of the corpus (place, size, time of change) and the
        settings.
        """
        path = self.path
        files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
        facts = [(each.resolve(), each.stat()) for each in files]
        prints = [f"{name} {found.st_size} {found.st_mtime_ns}" for name, found in facts]
        said = [prints, self.topics, self.passes, self.vocabulary, seed]
        name = hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]
        kept = cache_dir() / "attnscope" / "topics" / f"{name}.safetensors"
        if kept.is_file():
            return load_topics(kept)
        model = fit_topics(
            path,
            topics=self.topics,
            passes=self.passes,
            vocabulary=self.vocabulary,
            seed=seed,
        )
        model.save(kept)
        return model
