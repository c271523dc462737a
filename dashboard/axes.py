"""Where things stand on a chart: axis ranges, ticks, gaps, labels that keep apart. Pure.

No axis is automatic: one that zooms into noise makes cliffs of it. A share spans at least 20 points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from store.metrics import METRICS
from store.words import DRIFTS

SMALLEST_SPAN = 20.0
"""Points of a share that an axis shows at the least."""


class Axis(NamedTuple):
    """From `low` to `high` in the unit drawn (per cent for shares), with a tick at each of `ticks`."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]


def scale(metric: str) -> float:
    """What a stored value is multiplied with to be drawn: shares are drawn in per cent."""
    return 100.0 if METRICS[metric].unit == "share" else 1.0


def axis(metric: str, values: Iterable[float]) -> Axis:
    """The axis that holds all `values` (as drawn)."""
    known = [value for value in values if math.isfinite(value)]
    if metric in DRIFTS:
        return _signed_axis(known)
    return _share_axis(known) if METRICS[metric].unit == "share" else _amount_axis(known)


def _signed_axis(values: Sequence[float]) -> Axis:
    """Around zero, as far down as up: a difference is none at its middle."""
    reach = max([SMALLEST_SPAN / 2, *(math.ceil(abs(value) / 5) * 5.0 for value in values)])
    one = _ticked(-reach, reach, 5.0 if reach <= 20 else 10.0 if reach <= 30 else 20.0, "")
    return one._replace(labels=tuple(label.replace("-", "−") for label in one.labels))


def _share_axis(values: Sequence[float]) -> Axis:
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    low, high = math.floor(low / 5) * 5.0, math.ceil(high / 5) * 5.0
    if high - low < SMALLEST_SPAN:
        middle = math.floor((low + high) / 10) * 5.0
        low, high = middle - SMALLEST_SPAN / 2, middle + SMALLEST_SPAN / 2
    low, high = _within(low, high)
    return _ticked(low, high, 5.0 if high - low <= 40 else 20.0 if high - low > 60 else 10.0, " %")


def _within(low: float, high: float) -> tuple[float, float]:
    """Shifted into 0 to 100, as wide as before."""
    shift = max(0.0, -low) - max(0.0, high - 100.0)
    return max(0.0, low + shift), min(100.0, high + shift)


def _amount_axis(values: Sequence[float]) -> Axis:
    """From zero: a small difference between large amounts is a small difference."""
    highest = max(values, default=1.0) or 1.0
    step = nice_step(highest / 4)
    return _ticked(0.0, math.ceil(highest / step) * step, step, "")


def _ticked(low: float, high: float, step: float, suffix: str) -> Axis:
    first = math.ceil(low / step)
    ticks = tuple(index * step for index in range(first, math.floor(high / step + 1e-9) + 1))
    return Axis(low, high, ticks, tuple(f"{tick:,.6g}{suffix}" for tick in ticks))


def nice_step(rough: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def same_span(metric: str, groups: Sequence[Sequence[float]]) -> list[Axis]:
    """An axis for each group around its own middle, all of one height, so that slopes compare."""
    if METRICS[metric].unit != "share" or metric in DRIFTS:
        return [axis(metric, [value for group in groups for value in group])] * len(groups)
    ranges = [axis(metric, group) for group in groups]
    span = max((each.high - each.low for each in ranges), default=SMALLEST_SPAN)
    return [_widened(each, span) for each in ranges]


def _widened(one: Axis, span: float) -> Axis:
    extra = math.floor((span - (one.high - one.low)) / 10) * 5.0
    low, high = _within(one.low - extra, one.low - extra + span)
    return _ticked(low, high, 5.0 if span <= 25 else 10.0 if span <= 60 else 20.0, " %")


# Times ------------------------------------------------------------------------


def local(at: datetime, zone: ZoneInfo) -> str:
    """A time as plotly takes it, in the viewer's zone: plotly knows no zones. Short, since thousands are
    sent."""
    return f"{at.astimezone(zone):%Y-%m-%dT%H:%M:%S}"


def clock(times: Sequence[datetime], zone: ZoneInfo) -> npt.NDArray[np.str_]:
    """The same for many at once."""
    stamps = [at.astimezone(zone).replace(tzinfo=None) for at in times]
    return np.datetime_as_string(np.array(stamps, dtype="datetime64[s]"))


def usual_step(times: Sequence[datetime]) -> timedelta:
    """The usual time between two runs; a day where there is only one."""
    steps = [(after - before).total_seconds() for before, after in pairwise(times)]
    return timedelta(seconds=median(steps)) if steps else timedelta(days=1)


def is_gap(before: datetime, after: datetime, step: timedelta) -> bool:
    """Whether a run is missing between two: a line that bridges it would draw what nobody measured."""
    return after - before > max(step * 1.6, timedelta(hours=1))


def is_silent(times: Sequence[datetime], now: datetime) -> bool:
    """Whether two runs or more are overdue by what was usual, and nothing came for a day."""
    if not times:
        return False
    return now - times[-1] > max(usual_step(times) * 2.5, timedelta(days=1))


def gaps(times: Sequence[datetime]) -> npt.NDArray[np.intp]:
    """Before which of them one is missing."""
    steps = np.diff([at.timestamp() for at in times])
    return np.flatnonzero(steps > max(np.median(steps) * 1.6, 3600)) + 1 if steps.size else np.array([], int)


def segments(times: Sequence[datetime]) -> list[slice]:
    """The stretches without a gap."""
    ends = [0, *gaps(times).tolist(), len(times)]
    return [slice(start, stop) for start, stop in pairwise(ends) if start < stop]


def edges(times: Sequence[datetime]) -> list[tuple[datetime, datetime]]:
    """From when to when each run's cell reaches: half-way to its neighbours, half a usual step beside a
    gap."""
    half = usual_step(times) / 2
    before = [times[0] - half, *(_half_way(a, b, half)[1] for a, b in pairwise(times))] if times else []
    after = [*(_half_way(a, b, half)[0] for a, b in pairwise(times)), times[-1] + half] if times else []
    return list(zip(before, after, strict=True))


def _half_way(before: datetime, after: datetime, half: timedelta) -> tuple[datetime, datetime]:
    """Where the cell of `before` ends and that of `after` begins."""
    if is_gap(before, after, half * 2):
        return before + half, after - half
    middle = before + (after - before) / 2
    return middle, middle


# Labels ------------------------------------------------------------------------


def apart(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions (px, growing downwards) near the wanted ones, at least `gap` from each other, within bounds
    where there is room. Order is kept."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [0.0] * len(wanted)
    floor = low
    for index in order:
        placed[index] = floor = max(wanted[index], floor)
        floor += gap
    ceiling = high
    for index in reversed(order):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - gap
    return placed
