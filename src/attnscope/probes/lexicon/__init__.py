"""What words know of each other: counts, alignments, and agreement with attention."""
