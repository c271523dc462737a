"""From the results of a run to its rollup: n, mean and interval of each metric, by tag. Pure.

The unit is the case: its trials are averaged first. What failed enters the error metrics and no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from store.metrics import METRICS, Metric
from store.records import Rollup
from store.stats.intervals import Interval, bootstrap_mean, bootstrap_median, wilson

EVERY = ""
"""The tag of the rollup over all cases."""


class CaseRow(NamedTuple):
    """One result: a case asked in one trial. `status`: ok, error, or skipped (not applicable)."""

    case: str
    tags: Sequence[str]
    trial: int
    status: str
    latency_ms: float | None
    attempts: int
    returned_n: int | None
    scores: Mapping[str, float]


class ScenarioRow(NamedTuple):
    """What planting one scenario took. `plant_ms` is None when nothing of it was played, `settle_ms` when it
    did not settle or never had to; `money` includes the asking."""

    status: str
    plants: int
    plant_ms: float | None
    settle_ms: float | None
    ingest_calls: int
    ingest_tokens: int
    money: float


def roll_up(cases: Iterable[CaseRow], scenarios: Iterable[ScenarioRow]) -> list[Rollup]:
    """One row for each (metric, tag) that has at least one value; scenario metrics have no tags."""
    values, tags = _by_case(cases)
    rows = [row for tag in (EVERY, *tags) for row in _of_cases(values, tag, tags.get(tag))]
    return rows + list(_of_scenarios(scenarios))


Values = dict[str, dict[str, float]]
"""Case -> metric -> mean over the case's trials."""


def _by_case(rows: Iterable[CaseRow]) -> tuple[Values, dict[str, set[str]]]:
    collected: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    tags: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, value in _values(row):
            collected[row.case][name].append(value)
        for tag in row.tags:
            tags[tag].add(row.case)
    means = {
        case: {name: sum(found) / len(found) for name, found in metrics.items()}
        for case, metrics in collected.items()
    }
    return means, dict(sorted(tags.items()))


def _values(row: CaseRow) -> Iterator[tuple[str, float]]:
    if row.status == "skipped":
        return
    yield "error_rate", float(row.status == "error")
    yield "first_try_errors", float(row.status == "error" or row.attempts > 1)
    yield "attempts", float(row.attempts)
    if row.status == "ok":
        yield from row.scores.items()
        if row.latency_ms is not None:
            yield "recall_ms", row.latency_ms
        if row.returned_n is not None:
            yield "returned_n", float(row.returned_n)


def _of_cases(values: Values, tag: str, members: set[str] | None) -> Iterator[Rollup]:
    columns: dict[str, list[float]] = defaultdict(list)
    for case in sorted(values) if members is None else sorted(members & values.keys()):
        for name, value in values[case].items():
            columns[name].append(value)
    for name, column in columns.items():
        if name in METRICS:
            yield _rolled(METRICS[name], tag, column)


def _of_scenarios(rows: Iterable[ScenarioRow]) -> Iterator[Rollup]:
    done = [(row, row.plant_ms) for row in rows if row.status == "ok" and row.plant_ms is not None]
    planted = [(row, ms) for row, ms in done if row.plants]
    columns = {
        "plant_ms": [ms / row.plants for row, ms in planted],
        "settle_ms": [row.settle_ms for row, _ in done if row.settle_ms is not None],
        "ingest_calls": [row.ingest_calls / row.plants for row, _ in planted],
        "ingest_tokens": [row.ingest_tokens / row.plants for row, _ in planted],
        "money": [row.money for row, _ in done],
    }
    for name, column in columns.items():
        if column:
            yield _rolled(METRICS[name], EVERY, column)


def _rolled(metric: Metric, tag: str, column: Sequence[float]) -> Rollup:
    values = np.asarray(column, dtype=np.float64)
    middle = float(np.median(values)) if metric.kind == "median" else float(values.mean())
    interval = _interval(metric, values)
    return Rollup(metric.name, tag, len(values), middle, interval.low, interval.high)


def _interval(metric: Metric, values: np.ndarray) -> Interval:
    """Wilson for everything that is a share, since a bootstrap of equal values claims a false certainty."""
    if metric.unit == "share":
        return wilson(min(float(values.sum()), float(len(values))), len(values))
    return bootstrap_median(values) if metric.kind == "median" else bootstrap_mean(values)
