"""The levels of a series between the times at which it changed. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dashboard.curves import Level
from store.metrics import METRICS
from store.queries import TrendPoint
from store.stats.changepoints import retrospective


def found(points: Sequence[TrendPoint], metric: str) -> list[Level]:
    """One a stretch, oldest first; none where no change is seen. Of shares of cases the number of cases says
    how much chance moves them."""
    values = np.array([point.mean for point in points])
    counts = np.array([point.n for point in points], dtype=float)
    changes = retrospective(values, counts if METRICS[metric].kind == "share" else None)
    if not changes.points:
        return []
    return [
        Level(points[level.first].started_at, points[level.last].started_at, level.mean)
        for level in changes.levels
    ]
