"""What attention will do on running text: topics, and repeated pairs with induction heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

import numpy as np

from attnscope.errors import AttnscopeError
from attnscope.prediction.asked import AskedText
from attnscope.probes.repeated_pairs import RepeatedPairs, repeated_pairs
from attnscope.report import Section, Table
from attnscope.theory import li2023
from attnscope.theory.aoyama2025 import FITS, SCATTER, emergence_tokens

MOST = 4_000
"""Documents that are read; more are sampled."""
TOPICS, PASSES = 20, 3
BATCH, CONTEXT = 64, 512
"""Of an update, where only the other one is given; pairs repeat within the context."""
FEWEST_REPEATS, PAIRS = 100, 12
"""Repeats below which nothing is said of them, and pairs that are listed."""
UPDATES = ((32, 256), (64, 512), (256, 1024), (512, 2048))
"""Sequences in an update, and tokens of a sequence, that the law is given for."""
FEWEST = 100
"""Documents below which topics cannot be told."""


def induction_section(asked: AskedText) -> Section:
    """Say how often pairs repeat and how reliably, and when induction heads are expected."""
    texts = _sample(asked)
    window = asked.context or CONTEXT
    found = repeated_pairs(_told(texts, asked), window)
    total = sum(found.unigram.values())
    guess = sum((n / max(total, 1)) ** 2 for n in found.unigram.values())
    reliable = found.kept / max(found.repeats, 1)
    if found.repeats < FEWEST_REPEATS:
        said = (
            f"Cannot tell: in {total:,} words only {found.repeats:,} stand in a window of {window} "
            f"words a second time with a successor; expected {FEWEST_REPEATS:,} at least."
        )
    else:
        said = (
            f"In windows of {window} words, a word that stood there before is "
            f"{found.repeats / max(found.pairs, 1):.0%} of all words (frequency), and "
            f"{reliable:.0%} of the time the same word follows as the last time (reliability; two "
            f"words drawn at random agree {guess:.1%} of the time): looking back for the last "
            f"occurrence pays {'well' if reliable > 5 * guess else 'little'} here."
        )
    updates: Sequence[tuple[int, int]] = UPDATES
    if asked.batch or asked.context:
        updates = ((asked.batch or BATCH, asked.context or CONTEXT),)
    law = _law(updates, total)
    sentences = [
        said,
        "When a head learns it depends on batch and context (Aoyama 2025, two fits to 35 models; "
        f"single models lie off by a factor of {SCATTER:g} either way). The law knows nothing of "
        "these texts; it was fitted to web-scale text, and a set that must be passed over many "
        "times is outside of it.",
    ]
    if asked.batch or asked.context:
        one = emergence_tokens(*updates[0])
        sentences.insert(
            0,
            f"With {updates[0][0]:,} sequences of {updates[0][1]:,} tokens an update: {one}"
            f"{'' if one.caution else '.'} These texts have {total:,} words: "
            f"{one.tokens / max(total, 1):.2g} passes over them.",
        )
    return Section(
        "induction",
        "When induction heads are expected",
        tuple(sentences),
        tables=(law, _pairs_table(found)),
    )


def _law(updates: Sequence[tuple[int, int]], total: int) -> Table:
    rows = []
    for batch, context in updates:
        both = [emergence_tokens(batch, context, fit) for fit in FITS]
        low, high = min(e.low for e in both), max(e.high for e in both)
        rows.append(
            (batch, context, f"{both[0].tokens:.2g}", f"{both[1].tokens:.2g}",
             f"{low:.2g} to {high:.2g}", round(both[0].updates),
             f"{both[0].tokens / max(total, 1):.2g}")
        )  # fmt: skip
    columns = (
        "sequences an update",
        "context (tokens)",
        "tokens until then (2025)",
        "by the fit of 2026",
        "range",
        "updates",
        "passes over this sample",
    )
    return Table("induction", "Tokens until an induction head appears", columns, tuple(rows))


def _pairs_table(found: RepeatedPairs) -> Table:
    """List the pairs that repeat most, each with how reliably its second word follows again."""
    best = sorted(found.by_pair.items(), key=lambda item: (-item[1], item[0]))[:PAIRS]
    rows = tuple(
        (
            f"{left} {right}",
            times,
            round(1000 * times / max(found.pairs, 1), 3),
            round(100 * times / found.by_first[left], 1),
        )
        for (left, right), times in best
    )
    columns = ("pair", "repeated (times)", "per 1,000 words", "same successor again (%)")
    return Table("repeated-pairs", "The pairs that repeat most within a window", columns, rows)


def _told(texts: list[str], asked: AskedText) -> Iterator[list[str]]:
    for index, text in enumerate(texts):
        if index % 200 == 0:
            asked.tell("counting repeated pairs", index, len(texts))
        yield text.lower().split()


def topics_section(asked: AskedText) -> Section | None:
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
    tables = []
    try:
        ratio = li2023.best_gamma(setting)
        own = ratio / (ratio + tau - 1)
        sentences.append(
            f"Attention to a word of the same topic is predicted to be {ratio:.3g} times that to a "
            "word of another topic once training ends (Theorem 3's minimiser). The theory has "
            "topics of disjoint words, one layer and one-hot inputs; on real text the order holds, "
            "the number is an upper guide."
        )
        rows_within = (
            ("own topic", round(100 * own, 1), round(100 / tau, 1)),
            ("all other topics", round(100 * (1 - own), 1), round(100 * (1 - 1 / tau), 1)),
            ("each other topic", round(100 * (1 - own) / (tau - 1), 2), round(100 / tau, 2)),
        )
        tables.append(
            Table(
                "topic-attention",
                f"Predicted attention of a word in a document of {tau} topics",
                ("to words of", "share of its attention (%)", "with uniform attention (%)"),
                rows_within,
            )
        )
    except AttnscopeError as error:
        sentences.append(f"The ratio of attention cannot be told: {error}")
    rows = tuple(
        (number + 1, ", ".join(top), round(float(model.coherence[number]), 3))
        for number, top in enumerate(model.top(8))
    )
    table = Table("topics", "Topics by their words", ("topic", "words", "coherence (NPMI)"), rows)
    return Section(
        "topics", "Topics and the attention within them", tuple(sentences), tables=(*tables, table)
    )


def _sample(asked: AskedText) -> list[str]:
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
