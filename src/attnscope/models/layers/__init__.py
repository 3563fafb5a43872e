"""A layer of a transformer with its derivative written out, and the dropout within it."""
