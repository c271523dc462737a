"""Where a trend bears rings: at the runs from which on it was told to be worse, and at those that began an
alert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from dashboard import data, incidents, parts
from dashboard.curves import Alert
from store import alert_titles, alert_words, queries, verdict_words
from store.queries import AlertRow, TrendPoint

METRIC = "pass"
"""What verdicts are of, so no other series has rings."""


def found(suite: str, series: Mapping[str, Sequence[TrendPoint]]) -> dict[str, list[Alert]]:
    """By backend, oldest first; only those that have one. `series`: of the pass rate of the whole suite, by
    backend."""
    turned = _turned(suite, series)
    said = data.ask(queries.verdicts, [point.run_id for points in turned.values() for point in points])
    known = data.ask(queries.alerts, suite=suite, limit=None)
    rings: dict[str, list[Alert]] = {}
    for name, first in turned.items():
        told = [_of_verdict(point, said[point.run_id].content) for point in first]
        kept = {ring.run_id: ring for ring in [*told, *_of_alerts(known, series[name])]}
        if kept:
            rings[name] = sorted(kept.values(), key=lambda ring: ring.at)
    return rings


def _turned(suite: str, series: Mapping[str, Sequence[TrendPoint]]) -> dict[str, list[TrendPoint]]:
    """By backend: the runs that were told to be worse, or suspected, right after one that was not."""
    worse = data.ask(queries.worse_runs, suite)
    return {
        name: [
            after
            for before, after in pairwise([None, *points])
            if after and after.run_id in worse and not (before and before.run_id in worse)
        ]
        for name, points in series.items()
    }


def _of_verdict(point: TrendPoint, content: Mapping[str, Any]) -> Alert:
    theme, badge = parts.theme(), verdict_words.badge(content)
    colour = theme.worse if badge.kind == "worse" else theme.suspected
    text = f"{badge.text}: {point.backend}, run {point.run_id}"
    return Alert(point.run_id, point.started_at, point.mean, colour, text)


def _of_alerts(known: Sequence[AlertRow], points: Sequence[TrendPoint]) -> list[Alert]:
    """The alerts that somebody was told of, each at the first run that showed it."""
    at, rings = {point.run_id: point for point in points}, []
    for row in known:
        signal = alert_words.lead(row.incident)
        point = at.get(signal.first_run_id or 0)
        if point and row.incident.told_at and incidents.metric_of(signal) == METRIC:
            text = f"{incidents.number(row.id)}: {alert_titles.alert_title(row.incident)}, click opens it"
            rings.append(Alert(point.run_id, point.started_at, point.mean, _colour(row), text, row.id))
    return rings


def _colour(row: AlertRow) -> str:
    theme = parts.theme()
    colours = {"red": theme.worse, "orange": theme.suspected, "violet": theme.problem}
    return colours.get(incidents.LOOKS[row.incident.kind.name].colour, theme.text)
