"""Do attention and lexical knowledge find the words that people aligned?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnscope.probes.lexicon import ibm1
from attnscope.probes.lexicon.aligned_pieces import AlignedPieces
from attnscope.probes.lexicon.alignment import Links, diagonal_links
from attnscope.probes.lexicon.counts import sentences
from attnscope.report import Table
from attnscope.studies.snell2021.agreement.evidence import Evidence
from attnscope.tasks.parallel_pieces import PiecePairs
from attnscope.theory.snell2021.before_training import ITERATIONS


def gold_table(gold: AlignedPieces, seen: Evidence, train: PiecePairs) -> Table:
    """Tabulate alignment error rates at the end of the runs.

    Args:
        gold: what was read.
        seen: the runs.
        train: the training pairs, for IBM Model 1.
    """

    def links(name: str, run: str) -> list[Links]:
        cells = np.asarray(seen.observed[f"{name}_gold"].sel(run=run).isel(end=-1), dtype=float)
        return gold.links(gold.weights(cells if name == "alpha" else np.exp(cells)))

    vocabulary = seen.run.data.get("word").size
    source, target = (sentences(s, vocabulary=vocabulary) for s in (train.source, train.target))
    by_counts = ibm1.fit(source, target, ITERATIONS)
    pieces = zip(gold.pairs.source, gold.pairs.target, strict=True)
    by_ibm = [by_counts.alpha(x.tolist(), y.tolist()) for x, y in pieces]
    words = zip(gold.alignments.source, gold.alignments.target, strict=True)
    kinds: dict[str, Sequence[Links]] = {
        "attention α, run A": links("alpha", "A"),
        "lexical probe β, run A": links("lexical", "A"),
        "lexical probe β^uf, uniform attention": links("lexical", "uniform"),
        "lexical probe β^px, proxy": links("lexical", "proxy"),
        f"IBM Model 1, {ITERATIONS} iterations": gold.links(by_ibm),
        "diagonal": [diagonal_links(len(source), len(target)) for source, target in words],
    }
    rows = tuple(
        (name, round(gold.error_rate(found), 2), sum(map(len, found)))
        for name, found in kinds.items()
    )
    sure = sum(map(len, gold.alignments.sure))
    title = (
        f"Gold alignments: {len(gold.pairs):,} pairs with {sure:,} sure links, at the end of the "
        "runs (alignment error rate; lower is better)"
    )
    return Table("gold", title, ("links of", "AER [%]", "links"), rows)
