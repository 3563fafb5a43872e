"""What Li 2023 printed for models trained on real text (Tables 1, 2 and 5)."""

from __future__ import annotations

THRESHOLDS = (0.0005, 0.001, 0.002)
"""Ambiguity thresholds: share of the vocabulary kept for each topic."""

MEASURES = ("cosine", "dot product", "attention")
"""Same topic over different topics: of embeddings, of embeddings, of attention weights."""

Row = tuple[float, float, float]

NO_OVERLAP: dict[str, tuple[Row, Row, Row]] = {
    "Bert": ((1.21, 1.19, 1.32), (1.13, 1.15, 1.28), (1.11, 1.13, 1.22)),
    "Albert": ((5.64, 6.29, 1.33), (4.18, 3.74, 1.28), (3.24, 2.93, 1.22)),
    "Bart": ((2.80, 2.67, 1.35), (1.95, 1.92, 1.31), (1.63, 1.62, 1.23)),
    "Electra": ((5.98, 5.37, 2.14), (7.70, 7.35, 2.09), (7.46, 8.08, 1.95)),
    "Roberta": ((6.44, 6.81, 1.40), (5.73, 6.31, 1.31), (5.24, 5.30, 1.22)),
    "Bert, random": (
        (1.00080, 1.00063, 0.99943),
        (0.99974, 1.00036, 0.99996),
        (1.00016, 1.00027, 1.00007),
    ),
}
"""Table 1, topics do not overlap: a row a threshold, in the order of :data:`MEASURES`."""

OVERLAP: dict[str, tuple[Row, Row, Row]] = {
    "Bert": ((1.14, 1.04, 1.23), (0.97, 1.05, 1.17), (0.99, 0.93, 1.13)),
    "Albert": ((4.15, 3.06, 1.23), (3.09, 3.04, 1.17), (1.54, 1.44, 1.11)),
    "Bart": ((2.51, 1.76, 1.27), (1.63, 1.12, 1.20), (1.06, 0.85, 1.11)),
    "Electra": ((5.28, 3.99, 1.70), (5.56, 5.57, 1.58), (6.39, 5.61, 1.48)),
    "Roberta": ((4.39, 5.01, 1.19), (5.20, 4.25, 1.15), (4.71, 4.15, 1.12)),
    "Bert, random": (
        (0.99814, 0.99957, 1.00009),
        (0.99820, 1.00167, 1.00013),
        (0.99964, 0.99928, 0.99978),
    ),
}
"""Table 5, topics can overlap."""

COOCCURRING_ATTENTION = ((0.00659, 0.00751), (0.00621, 0.00695), (0.00597, 0.00677))
"""Table 2: mean attention of words of one topic, and of words that co-occur the most."""
COOCCURRING_COSINE = ((0.468, 0.316), (0.461, 0.311), (0.425, 0.323))
"""Table 2: mean cosine of the embeddings of the same pairs."""


def published(overlap: bool) -> dict[str, dict[float, Row]]:
    """Return the published ratios by model and threshold."""
    table = OVERLAP if overlap else NO_OVERLAP
    return {name: dict(zip(THRESHOLDS, rows, strict=True)) for name, rows in table.items()}
