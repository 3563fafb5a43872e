"""What attention will do on running text: topics, and repeated pairs with induction heads."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from attnscope.datasets.kinds import DocumentSet
from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import Asked
from attnscope.report import Section, Table
from attnscope.theory import li2023
from attnscope.theory.aoyama2025 import FITS, emergence_tokens

MOST = 4_000
"""Documents that are read; more are sampled."""
TOPICS, PASSES = 20, 3
CONTEXT = 512
"""Words within which a pair counts as repeated."""
UPDATES = ((32, 256), (64, 512), (256, 1024), (512, 2048))
"""Sequences in an update, and tokens of a sequence, that the law is given for."""
FEWEST = 100
"""Documents below which topics cannot be told."""


def induction_section(asked: Asked[DocumentSet]) -> Section:
    """Say how often pairs repeat and how reliably, and when induction heads are expected."""
    texts = _sample(asked)
    pairs = repeats = kept = 0
    for index, text in enumerate(texts):
        words = text.lower().split()
        for start in range(0, len(words), CONTEXT):
            seen: dict[str, str] = {}
            window = words[start : start + CONTEXT]
            for left, right in pairwise(window):
                if left in seen:
                    repeats += 1
                    kept += seen[left] == right
                seen[left] = right
                pairs += 1
        if index % 200 == 0:
            asked.tell("counting repeated pairs", index, len(texts))
    unigram = Counter(word for text in texts for word in text.lower().split())
    total = sum(unigram.values())
    guess = sum((n / total) ** 2 for n in unigram.values())
    rows = []
    for batch, context in UPDATES:
        both = [emergence_tokens(batch, context, fit) for fit in FITS]
        low, high = min(e.low for e in both), max(e.high for e in both)
        passes = both[0].tokens / max(total, 1)
        rows.append(
            (batch, context, f"{both[0].tokens:.2g}", f"{low:.2g} to {high:.2g}",
             round(both[0].updates), f"{passes:.2g}")
        )  # fmt: skip
    reliable = kept / max(repeats, 1)
    columns = (
        "sequences an update",
        "context (tokens)",
        "tokens until then",
        "range",
        "updates",
        "passes over this sample",
    )
    return Section(
        "induction",
        "When induction heads are expected",
        (
            f"In windows of {CONTEXT} words, a word that stood there before is "
            f"{repeats / max(pairs, 1):.0%} of all words, and {reliable:.0%} of the time the same "
            "word follows as the last time "
            f"(two words drawn at random agree {guess:.1%} of the time): looking back for the last "
            f"occurrence pays {'well' if reliable > 5 * guess else 'little'} here.",
            "When a head learns it depends on batch and context (Aoyama 2025, two fits to 35 "
            "models; single models lie off by a factor of 2 either way). The law knows nothing of "
            "these texts; it was fitted to web-scale text, and a set that must be passed over "
            "many times is outside of it.",
        ),
        tables=(
            Table("induction", "Tokens until an induction head appears", columns, tuple(rows)),
        ),
    )


def topics_section(asked: Asked[DocumentSet]) -> Section | None:
    """Fit topics, and say how much more attention stays within one than goes between them."""
    texts = _sample(asked)
    if len(texts) < FEWEST:
        return Section(
            "topics",
            "Topics",
            (
                f"Cannot tell: {len(texts)} documents are too few for topics; expected {FEWEST} at "
                "least. (A file of one document a line, or a folder, has more.)",
            ),
        )
    if find_spec("sklearn") is None:
        return Section(
            "topics", "Topics", ("Topics need scikit-learn: pip install 'attnscope[topics]'.",)
        )
    from attnscope.topics import fit_topics

    asked.tell("fitting topics", 0, len(texts))
    try:
        model = fit_topics(texts, topics=TOPICS, passes=PASSES, seed=asked.seed)
    except AttnscopeError as error:
        return Section("topics", "Topics", (f"Cannot tell: {error}",))
    weights = np.asarray(model.topic_word, dtype=float)
    share = weights / weights.sum(axis=1, keepdims=True)
    words = round(float(np.exp(-(share * np.log(share + 1e-300)).sum(axis=1)).mean()))
    tau = _topics_in_a_document(texts, share, {word: i for i, word in enumerate(model.words)})
    setting = li2023.TopicSetting(topics=TOPICS, words=max(2, words), tau=tau)
    gap = li2023.topic_gap(setting)
    sentences = [
        f"{TOPICS} topics of about {words:,} words in use; a document is about {tau} of them.",
        f"Embeddings of two words of one topic are predicted to be closer: their inner product is "
        f"larger by {gap:.2g} than that of two topics (Li 2023, Theorem 1, with T = {TOPICS}, "
        f"v = {words:,}, τ = {tau}).",
    ]
    try:
        ratio = li2023.best_gamma(setting)
        sentences.append(
            f"Attention to a word of the same topic is predicted to be {ratio:.3g} times that to a "
            "word of another topic once training ends (Theorem 3's minimiser). The theory has "
            "topics of disjoint words, one layer and one-hot inputs; on real text the order holds, "
            "the number is an upper guide."
        )
    except AttnscopeError as error:
        sentences.append(f"The ratio of attention cannot be told: {error}")
    rows = tuple(
        (number + 1, ", ".join(top), round(float(model.coherence[number]), 3))
        for number, top in enumerate(model.top(8))
    )
    table = Table("topics", "Topics by their words", ("topic", "words", "coherence (NPMI)"), rows)
    return Section(
        "topics", "Topics and the attention within them", tuple(sentences), tables=(table,)
    )


def _sample(asked: Asked[DocumentSet]) -> list[str]:
    texts = asked.data.splits.get("train") or next(iter(asked.data.splits.values()))
    if len(texts) <= MOST:
        return list(texts)
    order = np.random.default_rng(asked.seed).permutation(len(texts))[:MOST]
    return [texts[i] for i in np.sort(order)]


def _topics_in_a_document(texts: list[str], share: np.ndarray, numbers: dict[str, int]) -> int:
    """Return the perplexity of the topics of a document, on average over some."""
    found = []
    for text in texts[:300]:
        ids = [numbers[word] for word in text.lower().split() if word in numbers]
        if len(ids) < 10:
            continue
        posterior = share[:, ids] / share[:, ids].sum(axis=0)
        mean = posterior.mean(axis=1)
        found.append(float(np.exp(-(mean * np.log(mean + 1e-300)).sum())))
    middle = round(float(np.median(found))) if found else 2
    return int(np.clip(middle, 2, share.shape[0] - 1))
