"""Pathfinder: does a contour of paddles join two discs? Images with everything that was drawn."""

from attnscope.tasks.pathfinder.images import (
    Pathfinder,
    PathfinderImages,
    PathfinderSet,
    PathfinderTruth,
    check_labels,
    sample_sheet,
    strokes,
)

__all__ = [
    "Pathfinder",
    "PathfinderImages",
    "PathfinderSet",
    "PathfinderTruth",
    "check_labels",
    "sample_sheet",
    "strokes",
]
