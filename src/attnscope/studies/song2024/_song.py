"""What the studies of Song 2024 share: where the paper is."""

CITATION = (
    "Song, Han, Zhang, Ding, Hong. Unraveling the Gradient Descent Dynamics of Transformers. "
    "NeurIPS 2024."
)
