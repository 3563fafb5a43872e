"""What single words say about the label of a text: counts, evidence, and how well it predicts."""
