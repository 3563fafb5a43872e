"""Compare scikit-learn, gensim and tomotopy at LDA on WikiText-2: 100 topics, 6 passes.

``run.py`` has a row of one pass. Run by itself this prints everything that was compared. It needs
WikiText-2 (``attnscope data get wikitext2``, or ATTNSCOPE_DATA) and the packages that are
compared: ``pip install scikit-learn gensim tomotopy``; a row whose package is missing says so. All
get the same word numbers, one thread, and are judged by the same coherence. Every fit has a process
of its own, so that peaks of memory do not add up. ``--memory`` prints in place of that what a
corpus ten times as large costs: WikiText-2 ten times over in each library, and, as ``attnscope
topics`` does it, 50,000 IMDB reviews against 5,000 of them. ``--share 0.5`` lets words stand in
half of the documents in place of a tenth.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from attnscope.datasets import data_dir
from attnscope.topics.coherence import npmi
from attnscope.topics.corpus import stream
from attnscope.topics.filter import topic_words
from attnscope.topics.lda import BATCH, RAREST, commonest, fit_topics
from attnscope.topics.model import TopicModel, top_words
from attnscope.topics.spool import Spool
from attnscope.topics.words import DocumentFrequency, content_words, numbers
from harness import Measured, Row, Skip, turns
from peak import peak_kilobytes

TOPICS, PASSES, SWEEPS, THRESHOLD = 100, 6, 100, 0.001
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Words = tuple[str, ...]
Matrix = NDArray[np.floating[Any]]


def scikit_learn(spool: Spool, words: Words, passes: int) -> Matrix:
    """Online variational Bayes, one update every BATCH documents."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(TOPICS, random_state=0, total_samples=spool.documents)
    for _ in range(passes):
        for counts in spool.batches(BATCH, len(words)):
            model.partial_fit(counts)
    return model.components_


def gensim(spool: Spool, words: Words, passes: int) -> Matrix:
    """Online variational Bayes with the same batches."""
    from gensim.models import LdaModel

    class Counted:
        def __len__(self) -> int:
            return spool.documents

        def __iter__(self) -> Iterator[list[tuple[int, int]]]:
            for document in spool:
                found, counts = np.unique(document, return_counts=True)
                yield list(zip(found.tolist(), counts.tolist(), strict=True))

    model = LdaModel(
        Counted(),
        TOPICS,
        id2word=dict(enumerate(words)),
        passes=passes,
        chunksize=BATCH,
        random_state=0,
        eval_every=None,
    )
    return model.get_topics()


def tomotopy(spool: Spool, words: Words, passes: int) -> Matrix:
    """Collapsed Gibbs sampling: the corpus is held in memory, a pass is a sweep."""
    import tomotopy

    model = tomotopy.LDAModel(k=TOPICS, seed=0)
    for document in spool:
        model.add_doc([words[number] for number in document])
    model.train(passes, workers=1)
    place = {word: number for number, word in enumerate(words)}
    columns = [place[word] for word in model.used_vocabs]
    matrix = np.zeros((TOPICS, len(words)))
    for topic in range(TOPICS):
        matrix[topic, columns] = model.get_topic_word_dist(topic)
    return matrix


@dataclass(frozen=True)
class Entry:
    """One row of the table."""

    package: str
    fit: Callable[[Spool, Words, int], Matrix]
    passes: int


ENTRIES = {
    "scikit-learn": Entry("scikit-learn", scikit_learn, PASSES),
    "gensim": Entry("gensim", gensim, PASSES),
    "tomotopy": Entry("tomotopy", tomotopy, PASSES),
    f"tomotopy, {SWEEPS} sweeps": Entry("tomotopy", tomotopy, SWEEPS),
}


def wikitext() -> Path:
    return data_dir() / "wikitext2" / "wikitext-2-v1.zip"


def numbered(spool: Spool, share: float, copies: int = 1) -> Words:
    """Fill a spool with WikiText-2, so many times over; return the vocabulary.

    A word may stand in that share of the documents.
    """
    frequency = DocumentFrequency()
    for text in stream(wikitext()):
        frequency.add(content_words(text))
    words = frequency.vocabulary(100_000, RAREST, share)
    for _ in range(copies):
        for document in numbers(stream(wikitext()), words):
            spool.add(document)
    return words


def measure(name: str, share: float) -> dict[str, Any]:
    """Fit once in this process; return what was measured."""
    entry = ENTRIES[name]
    with Spool() as spool:
        words = numbered(spool, share)
        start = time.process_time()
        matrix = entry.fit(spool, words, entry.passes)
        seconds = time.process_time() - start
        peak = peak_kilobytes()
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
        top = top_words(matrix, 10)
        values = npmi(top, spool)
        left, between = filtered(TopicModel(words, matrix, values, {}), spool)
    return {
        "seconds": seconds,
        "megabytes": peak / 1024,
        "coherence": float(values.mean()),
        "different": len(np.unique(top)),
        "left": left,
        "between": between,
        "hash": hashlib.sha256(np.ascontiguousarray(matrix).tobytes()).hexdigest(),
    }


def filtered(model: TopicModel, spool: Spool) -> tuple[int, float]:
    """Return how many words the ambiguity filter leaves, and the NPMI of same-topic pairs."""
    chosen = topic_words(model, THRESHOLD)
    place = {word: number for number, word in enumerate(model.words)}
    groups: dict[int, list[int]] = {}
    for word, topics in chosen.topics.items():
        groups.setdefault(min(topics), []).append(place[word])
    rows = [row for row in groups.values() if len(row) > 1]
    pairs = [len(row) * (len(row) - 1) for row in rows]
    return len(chosen.words), float(np.average(npmi(rows, spool), weights=pairs))


def library_peak(name: str, copies: int) -> dict[str, Any]:
    """Go once through WikiText-2, so many times over; return the peak of this process."""
    with Spool() as spool:
        words = numbered(spool, commonest(TOPICS), copies)
        ENTRIES[name].fit(spool, words, 1)
        return {"megabytes": peak_kilobytes() / 1024}


def own_peak(corpus: str) -> dict[str, Any]:
    """Fit topics in one pass as the package does; return the peak of this process."""
    model = fit_topics(corpus, topics=20, passes=1, vocabulary=10_000)
    return {
        "megabytes": peak_kilobytes() / 1024,
        "documents": model.settings["documents"],
        "vocabulary": len(model.words),
    }


def child(*words: str) -> dict[str, Any]:
    """Run this file for one measurement."""
    done = subprocess.run(
        [sys.executable, __file__, *words],
        env=os.environ | ONE_THREAD,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def installed(package: str) -> str | None:
    """Return the version of a package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def compare(console: Console, share: float) -> None:
    """Print the table of the libraries."""
    table = Table("library", "time", "peak", "NPMI", "top words", "left", "NPMI", "same seed")
    for name, entry in ENTRIES.items():
        version = installed(entry.package)
        if version is None:
            table.add_row(name, "not installed")
            continue
        with console.status(name):
            words = ("--library", name, "--share", str(share))
            first, again = child(*words), child(*words)
        table.add_row(
            f"{name} ({version})",
            f"{first['seconds']:.1f} s, {again['seconds']:.1f} s",
            f"{first['megabytes']:.0f} MB",
            f"{first['coherence']:+.3f}",
            f"{first['different']} of {TOPICS * 10}",
            f"{first['left']}",
            f"{first['between']:+.3f}",
            "equal" if first["hash"] == again["hash"] else "differs",
        )
    console.print(table)
    console.print(
        "time: processor time of the fit, twice. NPMI: mean over topics, ten top words, window of "
        "10. top words: how many different ones. left: words that the ambiguity filter leaves at "
        f"{THRESHOLD:.1%} without overlap, and the NPMI of pairs of them with the same topic."
    )


def compare_memory(console: Console) -> None:
    """Print the table of peaks."""
    table = Table("what", "corpus", "ten times", "ratio")
    for name, entry in ENTRIES.items():
        if entry.passes == PASSES and installed(entry.package):
            with console.status(name):
                small, large = (child("--peak", name, "--copies", n) for n in ("1", "10"))
            row(table, f"{name}, WikiText-2, 100 topics, one pass", small, large)
    reviews = data_dir() / "imdb" / "aclImdb_labeled.tar.xz"
    if reviews.exists():
        with console.status("reviews"):
            small, large = reviewed(reviews)
        count = f"{small['documents']:,} and {large['documents']:,} reviews"
        row(table, f"attnscope topics, {count}, 20 topics, 10,000 words, one pass", small, large)
    console.print(table)


def row(table: Table, what: str, small: dict[str, Any], large: dict[str, Any]) -> None:
    """Add a row of two peaks and their ratio."""
    peaks = small["megabytes"], large["megabytes"]
    table.add_row(what, *(f"{peak:.0f} MB" for peak in peaks), f"{peaks[1] / peaks[0]:.2f}")


def reviewed(reviews: Path) -> Iterator[dict[str, Any]]:
    """Fit every tenth review, then all."""
    with tempfile.TemporaryDirectory() as folder:
        for step in (10, 1):
            path = Path(folder) / f"{step}.txt"
            with path.open("w") as file:
                for text in islice(stream(reviews), 0, None, step):
                    file.write(text.replace("\n", " ") + "\n")
            yield child("--corpus", str(path))


def one_pass() -> Measured:
    """Time a pass of gensim and of what the package uses, in turns."""
    if not wikitext().exists():
        raise Skip(f"'{wikitext()}' is not there: run `attnscope data get wikitext2`.")
    if installed("gensim") is None:
        raise Skip("gensim is not installed.")
    with Spool() as spool:
        words = numbered(spool, commonest(TOPICS))
        return turns(
            lambda: gensim(spool, words, 1),
            lambda: scikit_learn(spool, words, 1),
            2,
            warm=False,
        )


ROWS = (
    Row(
        "lda.one_pass",
        f"LDA, {TOPICS} topics, a pass over WikiText-2",
        "gensim",
        "updates of topics by document",
        one_pass,
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", action="store_true", help="a corpus ten times as large")
    parser.add_argument(
        "--share",
        type=float,
        default=commonest(TOPICS),
        help="words may stand in this share of the documents (default: 0.1)",
    )
    # What follows is for the processes that this one starts.
    parser.add_argument("--library", choices=list(ENTRIES), help=argparse.SUPPRESS)
    parser.add_argument("--peak", choices=list(ENTRIES), help=argparse.SUPPRESS)
    parser.add_argument("--copies", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--corpus", help=argparse.SUPPRESS)
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if options.library is not None:
        print(json.dumps(measure(options.library, options.share)))
    elif options.peak is not None:
        print(json.dumps(library_peak(options.peak, options.copies)))
    elif options.corpus is not None:
        print(json.dumps(own_peak(options.corpus)))
    elif not wikitext().exists():
        sys.exit(f"lda.py: '{wikitext()}' is not there: run `attnscope data get wikitext2`.")
    elif options.memory:
        compare_memory(console)
    else:
        compare(console, options.share)


if __name__ == "__main__":
    main()
