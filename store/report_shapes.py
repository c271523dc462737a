"""Reports as the JSON that scripts rely on: the numbers of the documents, and no text of a memory but where
it was asked for."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from store import run_words, shapes, week_words
from store.evidence import plain
from store.licences import credit
from store.queries.reporting import RunReport
from store.queries.results import CaseRow
from store.queries.suites import SuiteRow
from store.week import SeriesWeek, Upgrade, Week, turns


def run(r: RunReport) -> dict[str, Any]:
    """`verdict` is None where nothing was said of the run."""
    lost, gained = run_words.turned(r)
    suspects = [
        {"name": one.name, "old": one.old, "new": one.new}
        for one in (r.at_turn.changes.suspects if r.at_turn else ())
    ]
    return {
        "report": "run",
        "title": run_words.title(r),
        "run": shapes.run(r.run),
        "suite": _suite(r.suite),
        "before": r.before and r.before.id,
        "verdict": shapes.verdict(r.said.content, suspects) if r.said else None,
        "lost": [_case(r, row) for row in lost],
        "gained": [_case(r, row) for row in gained],
        "failed": [_case(r, row) for row in r.cases if row.passed is False],
        "errors": [_case(r, row) for row in r.cases if row.status == "error"],
        "tags": [
            {"tag": row.tag, "n": row.n, "pass": row.mean, "low": row.low, "high": row.high} for row in r.tags
        ],
        "environment": plain(r.ran_on),
        "changed": [
            {"name": one.name, "old": one.old, "new": one.new}
            for one in (r.since_before.changes.suspects if r.since_before else ())
        ],
        "alerts": [row.id for row in r.alerts],
        "removed": dict(r.removed),
    }


def _case(r: RunReport, row: CaseRow) -> dict[str, Any]:
    texts = {"query": row.query, "first_hit": row.first_hit} if r.with_texts else {}
    return shapes.case(row) | texts


def _suite(row: SuiteRow) -> dict[str, Any]:
    told = ("name", "kind", "origin", "version", "cases", "owner", "licence", "citation")
    return {name: getattr(row, name) for name in told} | {"credit": credit(row.licence, row.citation)}


def week(w: Week) -> dict[str, Any]:
    return {
        "report": "week",
        "title": week_words.title(w),
        "since": shapes.moment(w.since),
        "until": shapes.moment(w.until),
        "suites": [_suite(row) for row in w.suites],
        "series": [_series(row) for row in w.series],
        "opened": [row.id for row in w.opened],
        "closed": [row.id for row in w.closed],
        "standing": [shapes.alert(row) for row in w.standing],
        "marks": [{"at": shapes.moment(one.at), "text": one.text, "kind": one.kind} for one in w.marks],
        "upgrades": [_upgrade(one) for one in w.upgrades],
        "missed": [
            {"schedule": one.schedule, "at": shapes.moment(one.scheduled_for), "state": one.state}
            | {"reason": one.reason}
            for one in w.missed
        ],
        "spent": [one._asdict() for one in w.spent],
        "decisions": week_words.decisions(w, UTC),
    }


def _series(row: SeriesWeek) -> dict[str, Any]:
    """`pass` and `before` are the newest pass rate and that of the last run before the week."""
    return {
        "suite": row.suite,
        "backend": row.backend,
        "origin": row.origin,
        "floor": row.floor,
        "state": week_words.series_word(row),
        "pass": row.now and row.now._asdict(),
        "before": row.before and row.before._asdict(),
        "difference": row.verdicts[-1].content["difference"] if row.verdicts else None,
        "whole": row.whole,
        "broken": [one.id for one in row.broken],
        "turns": [
            {"run": one.said.run_id, "at": shapes.moment(one.said.started_at), "verdict": one.badge.text}
            for one in turns(row)
        ],
        "nights": [{"run": point.run_id, "pass": point.mean, "n": point.n} for point in row.points],
    }


def _upgrade(one: Upgrade) -> dict[str, Any]:
    return {
        "backend": one.backend,
        "run": one.run_id,
        "at": shapes.moment(one.at),
        "changes": [{"name": name, "old": old, "new": new} for name, old, new in one.changes],
    }
