"""The studies of the papers, under their citation keys: one module or one folder each."""
