"""Pathfinder: does a contour of paddles join two discs? Images with everything that was drawn."""

from attnscope.tasks.pathfinder.balance import (
    BalancedSet,
    balanced_rows,
    disc_distance,
    distance_accuracy,
    paired_rows,
    places_accuracy,
)
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
    "BalancedSet",
    "Pathfinder",
    "PathfinderImages",
    "PathfinderSet",
    "PathfinderTruth",
    "balanced_rows",
    "check_labels",
    "disc_distance",
    "distance_accuracy",
    "paired_rows",
    "places_accuracy",
    "sample_sheet",
    "strokes",
]
