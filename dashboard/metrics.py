"""/metrics: the figures of the record in the OpenMetrics text format, for Prometheus and its like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from dashboard import configuration
from dashboard.machines import Resource, database, heartbeat_age
from store import queries
from store.database import Database
from store.queries import RunRow, Standing

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float


class Gauge(NamedTuple):
    """`unit` "" where the figure has none; else the name ends with it."""

    name: str
    meaning: str
    unit: str
    samples: list[Sample]


class Metrics(Resource):
    """503 while the record cannot be read, so that a scrape fails and is seen to."""

    def get(self, request: Request) -> Response:
        db = database()
        return Response(rendered(gauges(db, datetime.now(UTC))), headers={"Content-Type": CONTENT_TYPE})


def gauges(db: Database, now: datetime) -> list[Gauge]:
    """All figures as they stand `now`."""
    standings = queries.standings(db)
    return [*_of_runs(standings, now), _queue(db, standings), *_of_collector(db, now), _configuration(db)]


def _age(run: RunRow | None, now: datetime) -> float | None:
    return (now - run.finished_at).total_seconds() if run and run.finished_at else None


def _mean(run: RunRow | None, metric: str) -> float | None:
    return run.metrics[metric].mean if run and metric in run.metrics else None


class _OfRuns(NamedTuple):
    name: str
    meaning: str
    unit: str
    value: Callable[[Standing, datetime], float | None]


_OF_RUNS = (
    _OfRuns(
        "memtrend_last_run_age_seconds",
        "Since the last run of the whole suite ended, whatever came of it.",
        "seconds",
        lambda one, now: _age(one.ended, now),
    ),
    _OfRuns(
        "memtrend_last_whole_run_age_seconds",
        "Since the last run that was neither void nor invalid ended.",
        "seconds",
        lambda one, now: _age(one.whole, now),
    ),
    _OfRuns(
        "memtrend_pass_rate",
        "Share of cases that passed in the last whole run, 0 to 1.",
        "",
        lambda one, now: _mean(one.whole, "pass"),
    ),
    _OfRuns(
        "memtrend_error_rate",
        "Share of cases that were errors in the last run that ended, 0 to 1.",
        "",
        lambda one, now: _mean(one.ended, "error_rate"),
    ),
)


def _of_runs(standings: list[Standing], now: datetime) -> Iterator[Gauge]:
    """What a run has no figure for is left out: it is not 0."""
    for name, meaning, unit, value in _OF_RUNS:
        values = [(one, value(one, now)) for one in standings]
        samples = [
            Sample({"suite": one.suite, "backend": one.backend}, found)
            for one, found in values
            if found is not None
        ]
        yield Gauge(name, meaning, unit, samples)


def _queue(db: Database, standings: list[Standing]) -> Gauge:
    """0 stands for every suite and backend that has been run, so that a rule has something to look at."""
    waiting = {(one.suite, one.backend): 0 for one in standings} | queries.queue(db)
    samples = [
        Sample({"suite": suite, "backend": backend}, n) for (suite, backend), n in sorted(waiting.items())
    ]
    return Gauge("memtrend_queue_length", "Runs asked for that have not ended yet.", "", samples)


def _of_collector(db: Database, now: datetime) -> Iterator[Gauge]:
    age = heartbeat_age()
    yield Gauge(
        "memtrend_collector_heartbeat_age_seconds",
        "Since the collector last said that it lives; nothing when it never did.",
        "seconds",
        [] if age is None else [Sample({}, age)],
    )
    missed = Counter(fire.schedule for fire in queries.missed(db, now))
    yield Gauge(
        "memtrend_schedule_missed",
        "Fires of a schedule that should have run and did not, since it last ran.",
        "",
        [Sample({"schedule": row.name}, missed[row.name]) for row in queries.schedules(db) if row.enabled],
    )


def _configuration(db: Database) -> Gauge:
    broken = bool(configuration.refused(db))
    meaning = "1 while a changed configuration is broken, so that the former stays in force; else 0."
    return Gauge("memtrend_configuration_broken", meaning, "", [Sample({}, float(broken))])


# The format -----------------------------------------------------------------------------------------------


def rendered(gauges: Iterable[Gauge]) -> str:
    """As OpenMetrics 1.0 has it; each name once, and an end that shows that nothing was cut off."""
    return "".join(f"{line}\n" for gauge in gauges for line in _lines(gauge)) + "# EOF\n"


def _lines(gauge: Gauge) -> Iterator[str]:
    yield f"# TYPE {gauge.name} gauge"
    if gauge.unit:
        yield f"# UNIT {gauge.name} {gauge.unit}"
    yield f"# HELP {gauge.name} {_escaped(gauge.meaning)}"
    for labels, value in gauge.samples:
        told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
        yield f"{gauge.name}{{{told}}} {value}" if told else f"{gauge.name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
