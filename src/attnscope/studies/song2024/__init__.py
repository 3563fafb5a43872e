"""Studies of Song 2024: softmax against Gaussian attention."""
