"""The figures for Prometheus, read with Prometheus' own parser."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from dashboard import machines, metrics, server
from dashboard.metrics import Gauge, Sample, rendered
from store import queries, writes
from store.database import Database, open_database
from tests.dashboard.conftest import Seeded
from tests.store.seeding import Seed

Labels = dict[str, str]


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    url = f"sqlite:///{tmp_path}/record.db"
    monkeypatch.setenv("MEMTREND_DATABASE__URL", url)
    machines.forget()
    with closing(open_database(url)) as database:
        yield database
    machines.forget()


def parsed(text: str) -> dict[str, list[tuple[Labels, float]]]:
    """Name -> labels and value. The parser refuses what is not OpenMetrics to the letter."""
    return {
        family.name: [(sample.labels, sample.value) for sample in family.samples]
        for family in text_string_to_metric_families(text)
    }


def figures(db: Database, now: datetime) -> dict[str, list[tuple[Labels, float]]]:
    return parsed(rendered(metrics.gauges(db, now)))


def test_an_empty_record_has_no_figures_and_no_errors(db: Database) -> None:
    """Every name is told, none has a sample but whether the configuration is in force."""
    found = figures(db, datetime.now(UTC))
    assert set(found) == {
        "memtrend_last_run_age_seconds",
        "memtrend_last_whole_run_age_seconds",
        "memtrend_pass_rate",
        "memtrend_error_rate",
        "memtrend_queue_length",
        "memtrend_collector_heartbeat_age_seconds",
        "memtrend_schedule_missed",
        "memtrend_configuration_broken",
    }
    assert found.pop("memtrend_configuration_broken") == [({}, 0.0)]
    assert not any(found.values())


def test_figures_of_runs(db: Database) -> None:
    """Ages count from the end of a run; the pass rate is of the last whole run, the error rate of the last
    one that ended."""
    seed = Seed(db)
    version = seed.suite()
    whole = queries.run(db, seed.run(version, ["a", "b", "c"], backend="mem0"))
    last = queries.run(db, seed.run(version, [], backend="mem0", day=1, status="invalid"))
    assert whole is not None
    assert last is not None
    assert whole.finished_at is not None
    assert last.finished_at is not None
    now = last.finished_at + timedelta(hours=1)
    found = figures(db, now)
    labels = {"suite": "golden", "backend": "mem0"}
    assert found["memtrend_last_run_age_seconds"] == [(labels, 3600.0)]
    assert found["memtrend_last_whole_run_age_seconds"] == [
        (labels, pytest.approx((now - whole.finished_at).total_seconds()))
    ]
    assert found["memtrend_pass_rate"] == [(labels, 0.75)]
    assert found["memtrend_error_rate"] == [(labels, last.metrics["error_rate"].mean)]


def test_figures_of_the_queue(db: Database) -> None:
    """What waits, by suite and backend, and 0 for what has been run and does not wait."""
    seed = Seed(db)
    seed.run(seed.suite(), [], backend="mem0")
    writes.ask_for_run(db, {"suite": "golden", "backend": "keyword"})
    assert figures(db, datetime.now(UTC))["memtrend_queue_length"] == [
        ({"suite": "golden", "backend": "keyword"}, 1.0),
        ({"suite": "golden", "backend": "mem0"}, 0.0),
    ]


def test_figures_of_the_collector(db: Database) -> None:
    """The age of its heartbeat, and how many fires of each schedule that is on nobody took."""
    now = datetime.now(UTC)
    for name, enabled in (("nightly", True), ("weekly", True), ("off", False)):
        writes.record_schedule(db, name, None, enabled)
    nights = [now + timedelta(days=days) for days in (1, 2, 3, 30)]
    writes.write_expected(db, "nightly", nights, now + timedelta(days=40))
    writes.beat(db, "collector", 1, "here")
    found = figures(db, now + timedelta(days=4))
    missed = {labels["schedule"]: n for labels, n in found["memtrend_schedule_missed"]}
    assert missed == {"nightly": 3.0, "weekly": 0.0}
    ((labels, age),) = found["memtrend_collector_heartbeat_age_seconds"]
    assert labels == {}
    assert age >= 0


def test_the_answer_is_openmetrics(seeded: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    """/metrics says what it is, and a parser that knows nothing of memtrend reads a month of runs."""
    monkeypatch.setenv("MEMTREND_DATABASE__URL", seeded.url)
    machines.forget()

    async def asked() -> httpx.Response:
        inside = httpx.ASGITransport(app=server.app)
        async with httpx.AsyncClient(transport=inside, base_url="http://127.0.0.1") as client:
            return await client.get("/metrics")

    answer = asyncio.run(asked())
    machines.forget()
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.text.endswith("\n# EOF\n")
    found = parsed(answer.text)
    assert ({"suite": "golden", "backend": "mem0"}) in [labels for labels, _ in found["memtrend_pass_rate"]]
    assert all(0 <= value <= 1 for _, value in found["memtrend_pass_rate"])


def test_the_unit_is_told_and_ends_the_name() -> None:
    """Seconds are told as such, in the order that the format has."""
    assert rendered([Gauge("a_seconds", "How long.", "seconds", [Sample({}, 1.5)])]) == (
        "# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n# HELP a_seconds How long.\na_seconds 1.5\n# EOF\n"
    )


TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)


@given(TEXTS, TEXTS, st.floats(allow_nan=False))
def test_any_name_comes_through(suite: str, meaning: str, value: float) -> None:
    """Quotes, backslashes and line ends in a name neither break the format nor get lost."""
    labels = {"suite": suite, "backend": 'back\\slash "quoted"\nline'}
    text = rendered([Gauge("m", meaning, "", [Sample(labels, value)])])
    ((read, number),) = parsed(text)["m"]
    assert read == labels
    assert math.isclose(number, value) or number == value
