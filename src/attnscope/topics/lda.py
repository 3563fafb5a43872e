"""Latent Dirichlet allocation by online variational Bayes (Hoffman, Blei and Bach, NIPS 2010).

The library is scikit-learn, which was compared with gensim and tomotopy (``benchmarks/lda.py``:
WikiText-2, 100 topics, 6 passes). All three give the same topics for the same seed. Scikit-learn
and gensim hold one batch at a time; tomotopy samples a corpus that it holds in memory, which is
not what a dump of Wikipedia allows, though with 100 sweeps its topics are the most coherent. Of
the two that stream, scikit-learn takes the same time, and the words that the ambiguity filter
leaves go together better (NPMI -0.014 against -0.163); it needs 219 MB against 160.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.topics.coherence import npmi
from attnscope.topics.corpus import CorpusKind, stream
from attnscope.topics.model import TopicModel, top_words
from attnscope.topics.spool import Spool
from attnscope.topics.words import DocumentFrequency, content_words, numbers

if TYPE_CHECKING:
    from sklearn.decomposition import LatentDirichletAllocation

Corpus = str | Path | Sequence[str]
Progress = Callable[[str, int, int], None]
"""Told what is done, how many documents of it, and of how many; 0 while that is not known."""

BATCH = 128
"""Documents between two updates of the topics."""

RAREST = 5
"""In how many documents a word must stand."""

TOP = 10
"""Words of a topic that its coherence is measured by."""


def fit_topics(
    corpus: Corpus,
    topics: int = 100,
    passes: int = 6,
    vocabulary: int = 100_000,
    *,
    seed: int = 0,
    kind: CorpusKind | None = None,
    progress: Progress | None = None,
) -> TopicModel:
    """Fit topics to a corpus that need not fit in memory.

    The text is read twice, for the vocabulary and for word ids, which go to a temporary file;
    the passes and the coherence read that. The same corpus and seed give the same topics.

    Args:
        corpus: a file or folder (see :func:`attnscope.topics.corpus.stream`), or documents.
        topics: how many topics; Li 2023 has 100.
        passes: how often all documents are gone through; Li 2023 has 6.
        vocabulary: how many words at most, the most frequent ones that are no stop words and stand
            in at least 5 documents and not in too many, see :func:`commonest`.
        seed: of the topics that the fit starts from.
        kind: how to read the corpus, if not as its first bytes say.
        progress: is told how far the work is.

    Raises:
        AttnscopeError: there are fewer documents than topics, or no words to make topics of; a
            number is below 1; or the corpus cannot be read, or not twice.
    """
    for name, value in (("topics", topics), ("passes", passes), ("vocabulary", vocabulary)):
        if value < 1:
            raise AttnscopeError(f"{name} is {value}: expected 1 or more.")
    model = _online(topics, seed)
    tell = progress or (lambda *_: None)
    documents, chosen = _vocabulary(corpus, kind, topics, vocabulary, tell)
    with Spool() as spool:
        texts = _told(_texts(corpus, kind), "numbering words", documents, tell)
        for document in numbers(texts, chosen):
            spool.add(document)
        if spool.documents != documents:
            raise AttnscopeError(
                f"the corpus had {documents} documents when it was first read, and then "
                f"{spool.documents}: expected a file, a folder or a list, which can be read twice."
            )
        model.set_params(total_samples=spool.documents)
        for turn in range(passes):
            _pass(model, spool, len(chosen), f"pass {turn + 1} of {passes}", tell)
        topic_word = model.components_ / model.components_.sum(axis=1, keepdims=True)
        read = _told(spool, "measuring coherence", spool.documents, tell)
        coherence = npmi(top_words(topic_word, TOP), read)
        settings = {
            "corpus": str(corpus) if isinstance(corpus, str | Path) else "documents in memory",
            "documents": spool.documents,
            "words": spool.tokens,
            "topics": topics,
            "passes": passes,
            "vocabulary": vocabulary,
            "rarest": RAREST,
            "commonest": commonest(topics),
            "batch": BATCH,
            "seed": seed,
        }
    return TopicModel(chosen, topic_word.astype(np.float32), coherence, settings)


def commonest(topics: int) -> float:
    """Return in what share of the documents a word may stand: 2/topics, from 0.1 to 0.5.

    A word of one topic, with one topic a document, stands in 1/topics of them. What stands in many
    more is a word of all topics ("year", "including"): it makes topics alike, and the ambiguity
    filter would drop it after it has cost time. On WikiText-2 with 100 topics, 0.1 in the place of
    0.5 nearly halves the time and leaves a third more words.
    """
    return min(0.5, max(0.1, 2 / topics))


def _online(topics: int, seed: int) -> LatentDirichletAllocation:
    try:
        from sklearn.decomposition import LatentDirichletAllocation
    except ImportError as error:
        raise AttnscopeError(
            "topics need scikit-learn, which is not installed: run "
            "`pip install 'attnscope[topics]'`."
        ) from error
    return LatentDirichletAllocation(topics, batch_size=BATCH, random_state=seed)


def _texts(corpus: Corpus, kind: CorpusKind | None) -> Iterator[str]:
    return stream(corpus, kind) if isinstance(corpus, str | Path) else iter(corpus)


def _told(items: Any, what: str, total: int, tell: Progress) -> Iterator[Any]:
    for done, item in enumerate(items, 1):
        yield item
        tell(what, done, total)


def _vocabulary(
    corpus: Corpus, kind: CorpusKind | None, topics: int, size: int, tell: Progress
) -> tuple[int, tuple[str, ...]]:
    """Return the number of documents and the words to model.

    The counts of all words go when this ends: they grow with the corpus, and the fit needs none.
    """
    frequency = DocumentFrequency()
    for text in _told(_texts(corpus, kind), "counting words", 0, tell):
        frequency.add(content_words(text))
    if not frequency.documents:
        raise AttnscopeError("the corpus is empty: expected documents with words in them.")
    if frequency.documents < topics:
        raise AttnscopeError(
            f"the corpus has {frequency.documents} documents, fewer than the {topics} topics: "
            f"expected at least as many; ask for {frequency.documents} topics or fewer, or, if a "
            "file holds more documents than that, say what kind it is."
        )
    if not frequency.counts:
        raise AttnscopeError(
            f"the {frequency.documents} documents of the corpus hold no word that is left once "
            "stop words, numbers and words of fewer than three letters are taken out: expected "
            "English text."
        )
    chosen = frequency.vocabulary(size, RAREST, commonest(topics))
    if len(chosen) < topics:
        raise AttnscopeError(
            f"{len(chosen)} words of the corpus stand in at least {RAREST} documents and in at "
            f"most {commonest(topics):.0%} of the {frequency.documents}: expected at least as many "
            f"as the {topics} topics. Take fewer topics, or more documents."
        )
    return frequency.documents, chosen


def _pass(
    model: LatentDirichletAllocation, spool: Spool, words: int, what: str, tell: Progress
) -> None:
    done = 0
    for counts in spool.batches(BATCH, words):
        model.partial_fit(counts)
        done += counts.shape[0]
        tell(what, done, spool.documents)
