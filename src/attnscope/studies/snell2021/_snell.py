"""What the studies of Snell 2021 share: where the paper is."""

CITATION = (
    "Snell, Zhong, Klein, Steinhardt. Approximating How Single Head Attention Learns. "
    "arXiv:2103.07601, 2021."
)
