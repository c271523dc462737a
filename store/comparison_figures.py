"""What stands beside the pass rate of a comparison: metrics, times and costs, lines to read them by. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from store.compared_sides import AskedSide, Paired
from store.comparisons import LEVEL, MetricRow, RatioRow, Reference
from store.metrics import METRICS
from store.stats.bootstrap import bca
from store.stats.clusters import by_cluster, cr1
from store.stats.comparisons import orientation, paired_difference, paired_ratio, turned
from store.stats.intervals import Floats, Indices, Interval, wilson

RATIO_DRAWS = 4_000
"""Of a ratio that is shown with two decimals."""
OF_RUNS = "a sum over the runs, not a sample"


def rate(values: Floats, groups: Indices | None) -> tuple[float | None, float | None, float | None]:
    """A mean of shares with its 95 % interval: Wilson's, or where cases are of conversations the one that is
    robust to that; None where there is none."""
    if not len(values):
        return None, None, None
    if groups is None:
        shown = wilson(float(values.sum()), len(values))
        return float(values.mean()), shown.low, shown.high
    found = cr1(values, groups)
    if found.low is None or found.high is None:
        return float(values.mean()), None, None
    return float(values.mean()), max(0.0, found.low), min(1.0, found.high)


def references(pairs: Paired) -> Iterator[Reference]:
    for row in pairs.record.references:
        found = np.array([row.answers.get(case.id, np.nan) for case in pairs.cases])
        known = ~np.isnan(found)
        mean, low, high = rate(found[known], pairs.groups(known))
        if mean is not None:
            yield Reference(row.name, row.kind, mean, low, high, int(known.sum()), row.run_id)


# Metrics --------------------------------------------------------------------------------------------------


def metrics(pairs: Paired) -> Iterator[MetricRow]:
    """One draw for all of them, where cases are independent."""
    shares = [name for name, metric in METRICS.items() if metric.unit == "share" and name != "pass"]
    sides = {name: pairs.metric(name) for name in shares}
    asked = {name: pair for name, pair in sides.items() if not np.isnan(pair[1] - pair[0]).all()}
    better = {name: _towards_better(name, *pair) for name, pair in asked.items()}
    drawn = {} if pairs.clusters is not None else _drawn_together(better)
    for name, (a, b) in asked.items():
        both = ~np.isnan(better[name])
        yield _metric(name, a[both], b[both], pairs.groups(both), drawn.get(name))


def _metric(name: str, a: Floats, b: Floats, groups: Indices | None, drawn: Interval | None) -> MetricRow:
    worse, better = (a, b) if METRICS[name].better == "higher" else (b, a)
    means = float(a.mean()), float(b.mean()), float((better - worse).mean())
    if drawn is not None and drawn.low is not None:
        return MetricRow(name, len(a), *means, drawn.low, drawn.high, drawn.method, None)
    found = paired_difference(worse, better, groups, level=LEVEL)
    return MetricRow(name, found.n, *means, found.low, found.high, found.method, found.reason)


def _towards_better(metric: str, a: Floats, b: Floats) -> Floats:
    found: Floats = b - a if METRICS[metric].better == "higher" else a - b
    return found


def _drawn_together(columns: Mapping[str, Floats]) -> dict[str, Interval]:
    """Of each column whose values are fit to be resampled. Turned one way before, so that swapped sides
    mirror their intervals."""
    fit = {name: column for name, column in columns.items() if not _is_of_one_trial(column)}
    if not fit:
        return {}
    ways = {name: orientation(column[~np.isnan(column)]) for name, column in fit.items()}
    matrix = np.stack([ways[name] * column for name, column in fit.items()], axis=1)
    found = zip(fit, bca(matrix, level=LEVEL), strict=True)
    return {name: turned(interval, ways[name]) for name, interval in found}


def _is_of_one_trial(differences: Floats) -> bool:
    """Yes and no alone, to which Newcombe's interval belongs."""
    return bool(np.isin(differences[~np.isnan(differences)], (-1, 0, 1)).all())


# Times and costs ------------------------------------------------------------------------------------------


def latencies(pairs: Paired) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """One value a case, of those that have one on both sides."""
    timed = _timed(pairs)
    return tuple(pairs.a.latency[timed].tolist()), tuple(pairs.b.latency[timed].tolist())


def _timed(pairs: Paired) -> Indices:
    return np.flatnonzero(pairs.kept & ~np.isnan(pairs.a.latency) & ~np.isnan(pairs.b.latency))


def ratios(pairs: Paired) -> Iterator[RatioRow]:
    yield from _times(pairs)
    yield from _tokens_returned(pairs)
    yield from _plants(pairs)
    for what, spent in (("ingest_tokens", _tokens), ("money_per_1000", _money)):
        a, b = spent(pairs.a), spent(pairs.b)
        if a or b:
            yield RatioRow(what, a, b, b / a if a else None, None, None, len(pairs.cases), OF_RUNS)


def _times(pairs: Paired) -> Iterator[RatioRow]:
    timed = _timed(pairs)
    if not len(timed):
        return
    a, b = pairs.a.latency[timed], pairs.b.latency[timed]
    groups = pairs.groups(np.isin(np.flatnonzero(pairs.kept), timed))
    found = paired_ratio(a, b, groups, resamples=RATIO_DRAWS)
    if found.reason is not None:
        return
    for what, one in zip(("recall_ms_median", "recall_ms_p95"), found.ratios, strict=True):
        at = float(np.quantile(a, one.share)), float(np.quantile(b, one.share))
        yield RatioRow(what, *at, one.ratio, one.low, one.high, one.n, one.reason)


def _tokens_returned(pairs: Paired) -> Iterator[RatioRow]:
    """Of sums, which an empty answer does not spoil as it would a quotient of its own."""
    a, b = pairs.metric("returned_tokens")
    both = ~(np.isnan(a) | np.isnan(b))
    groups, a, b = pairs.groups(both), a[both], b[both]
    if not len(a) or not a.sum():
        return
    means = float(a.mean()), float(b.mean())
    if groups is not None:
        (a, _), (b, _) = by_cluster(a, groups), by_cluster(b, groups)
    told = means[0], means[1], means[1] / means[0]
    if (a <= 0).any():
        reason = "an answer of A is empty: no interval"
        yield RatioRow("returned_tokens", *told, None, None, int(both.sum()), reason)
        return
    (found,) = bca(b[:, None], a)
    yield RatioRow("returned_tokens", *told, found.low, found.high, int(both.sum()), found.reason)


def _plants(pairs: Paired) -> Iterator[RatioRow]:
    """Of the scenarios that planted something on both sides."""
    rates = [_plants_per_s(side) for side in pairs.sides]
    both = sorted(rates[0].keys() & rates[1].keys())
    if both:
        a, b = (np.array([rate[name] for name in both]) for rate in rates)
        (one,) = paired_ratio(a, b, shares=(0.5,)).ratios
        at = float(np.median(a)), float(np.median(b))
        yield RatioRow("plants_per_s", *at, one.ratio, one.low, one.high, one.n, one.reason)


def _plants_per_s(side: AskedSide) -> dict[str, float]:
    taken: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in side.played:
        if row.plants and row.plant_ms:
            taken[row.scenario][0] += row.plants
            taken[row.scenario][1] += row.plant_ms
    return {name: 1000 * plants / ms for name, (plants, ms) in taken.items()}


def _tokens(side: AskedSide) -> float:
    """Model tokens to plant one memory."""
    plants = sum(row.plants for row in side.played)
    return sum(row.ingest_tokens for row in side.played) / plants if plants else 0.0


def _money(side: AskedSide) -> float:
    """USD for a thousand questions, planting included."""
    asked = int(side.trials.sum())
    return 1000 * sum(row.money for row in side.played) / asked if asked else 0.0
