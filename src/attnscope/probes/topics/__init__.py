"""Topic structure: what words of one topic have to do with each other."""
